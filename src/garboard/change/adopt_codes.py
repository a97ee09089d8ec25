"""What `change adopt` finds in a cluster: a finding as a value, and the codes with what each means."""

from collections.abc import Mapping
from enum import StrEnum

from garboard.documents import Json
from garboard.values import dataclass


class FindingLevel(StrEnum):
    """How much a finding matters."""

    DANGER = "danger"  # something is broken, or breaks by itself or at the next upgrade
    WARNING = "warning"  # an upgrade or a change goes otherwise than expected
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class AdoptCode:
    level: FindingLevel
    why: str


_DANGER, _WARNING, _NOTE = FindingLevel.DANGER, FindingLevel.WARNING, FindingLevel.NOTE
ADOPT_CODES: Mapping[str, AdoptCode] = {
    "certificate-expired": AdoptCode(_DANGER, "nobody accepts it any more"),
    "certificate-expires": AdoptCode(_WARNING, "nobody accepts it after that"),
    "authority-expires": AdoptCode(_WARNING, "what it signed ends with it; `certs renew` leaves it alone"),
    "orphan-member": AdoptCode(_DANGER, "it counts for the quorum of etcd, and no node of the cluster runs it"),
    "learner-left": AdoptCode(_WARNING, "etcd accepts one learner at a time: the next join of a control plane waits"),
    "unhealthy-member": AdoptCode(_DANGER, "the quorum is one member nearer to being lost"),
    "even-members": AdoptCode(_NOTE, "an even number of members bears no more failures than one fewer"),
    "unknown-flag": AdoptCode(_DANGER, "the component does not start with it again"),
    "removed-flag": AdoptCode(_DANGER, "the component of the next minor does not start with it"),
    "removed-gate": AdoptCode(_DANGER, "the component of the next minor does not start with it"),
    "locked-gate": AdoptCode(_DANGER, "the component of the next minor does not start with another value"),
    "flags-differ": AdoptCode(_WARNING, "clients get other answers from one control plane than from another"),
    "hand-edit": AdoptCode(_WARNING, "the next upgrade, and every change of that component, drops it"),
    "patches-not-recorded": AdoptCode(_WARNING, "an upgrade drops what they do, unless it is given them again"),
    "version-skew": AdoptCode(_WARNING, "an upgrade was not carried to its end"),
    "old-api": AdoptCode(_WARNING, "a later minor cannot read it"),
    "missing-config": AdoptCode(_DANGER, "joins and upgrades fail without it"),
    "unreadable-config": AdoptCode(_WARNING, "upgrades and changes refuse it"),
    "endpoint-differs": AdoptCode(_WARNING, "nodes that join are sent there"),
    "no-endpoint": AdoptCode(_NOTE, "no control plane can join, because all nodes know this one by its address"),
    "old-kubelet-flag": AdoptCode(_WARNING, "a kubelet of a later minor does not start with it"),
    "socket-not-noted": AdoptCode(_NOTE, "a later minor looks for the socket in instance-config.yaml"),
    "corefile-changed": AdoptCode(_NOTE, "an upgrade keeps it, and leaves out what a new CoreDNS would need"),
    "addon-version": AdoptCode(_WARNING, "an upgrade was not carried to its end"),
    "node-not-ready": AdoptCode(_WARNING, "upgrades and changes wait for it"),
    "component-not-ready": AdoptCode(_DANGER, "upgrades and changes refuse to begin"),
    "unknown-minor": AdoptCode(_NOTE, "what kubeadm of that minor renders is not known here, so nothing is compared"),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptFinding:
    """Something that should be known before a cluster is changed; `node` is empty if it is about all of it."""

    code: str
    subject: str  # a file, a component, a member, a field
    message: str
    cure: str  # the command to type, or what to do where no command does it
    node: str = ""

    @property
    def level(self) -> FindingLevel:
        return ADOPT_CODES[self.code].level

    @property
    def why(self) -> str:
        return ADOPT_CODES[self.code].why

    def as_json(self) -> dict[str, Json]:
        return {
            "code": self.code,
            "level": self.level.value,
            "node": self.node,
            "subject": self.subject,
            "message": self.message,
            "why": self.why,
            "cure": self.cure,
        }


ORDER = tuple(FindingLevel)


def in_order(finding: AdoptFinding) -> tuple[int, str, str, str, str]:
    """Return the key by which findings are sorted: what matters most comes first."""
    return ORDER.index(finding.level), finding.code, finding.node, finding.subject, finding.message
