"""Leases as values, and whether their holders are alive, which is judged by our own clock alone."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Self

from garboard.documents import Json
from garboard.errors import GarboardError
from garboard.kube.client import KubeClient
from garboard.kube.resources import ObjectRef
from garboard.values import dataclass

API_VERSION = "coordination.k8s.io/v1"
# The payloads of the present holder, and of all earlier ones that did not release the Lease.
PAYLOADS = "garboard.dev/lease-payloads"
# Earlier releases wrote the peer URLs of members of etcd there, and no other payload.
_FORMER_PAYLOADS, _FORMER_KIND = "garboard.dev/etcd-peer-urls", "etcd-member"

# A holder that was killed keeps the others waiting for this long; it renews often enough to miss a few.
DURATION_S = 15.0
# What a Lease without a holder names: it is free at once, and the API server wants a duration that is not zero.
_FREE_S = 1.0


@dataclass(frozen=True, slots=True)
class LeasePayload:
    """What a holder leaves to the next one if it dies. Who knows its kind clears it away; all others hand it on."""

    kind: str
    value: str

    @classmethod
    def parse(cls, text: str) -> Self:
        kind, _, value = text.partition(":")
        return cls(kind, value)

    def __str__(self) -> str:
        return f"{self.kind}:{self.value}"


@dataclass(frozen=True, slots=True)
class Lease:
    """A Lease as the API server stores it; `renewed` changes with every renewal and is never compared with a clock.

    `transitions` counts the holders. For a holder it is the token that tells its own time from a later one.
    """

    version: str
    holder: str
    duration_s: float
    renewed: str
    payloads: tuple[LeasePayload, ...]
    transitions: int = 0

    @classmethod
    def read(cls, document: dict[str, Json]) -> Self:
        metadata, spec = _mapping(document.get("metadata")), _mapping(document.get("spec"))
        duration = spec.get("leaseDurationSeconds")
        transitions = spec.get("leaseTransitions")
        return cls(
            version=str(metadata.get("resourceVersion") or ""),
            holder=str(spec.get("holderIdentity") or ""),
            duration_s=float(duration) if isinstance(duration, int | float) else 0.0,
            renewed=str(spec.get("renewTime") or ""),
            payloads=_payloads(_mapping(metadata.get("annotations"))),
            transitions=transitions if isinstance(transitions, int) else 0,
        )

    def content(self, name: str, namespace: str) -> Json:
        """Return the object; without a version it is one to be created."""
        metadata: dict[str, Json] = {"name": name, "namespace": namespace}
        if self.version:
            metadata["resourceVersion"] = self.version
        if self.payloads:
            metadata["annotations"] = {PAYLOADS: ",".join(map(str, self.payloads))}
        spec: dict[str, Json] = {
            "holderIdentity": self.holder,
            "leaseDurationSeconds": round(self.duration_s),
            "renewTime": self.renewed,
            "leaseTransitions": self.transitions,
        }
        return {"apiVersion": API_VERSION, "kind": "Lease", "metadata": metadata, "spec": spec}

    def renewed_now(self, duration_s: float) -> Self:
        return replace(self, duration_s=duration_s, renewed=micro_time(datetime.now(UTC)))

    def freed(self, payloads: tuple[LeasePayload, ...]) -> Self:
        """Return the Lease without a holder, with what the next one has to clear away."""
        return replace(self.renewed_now(_FREE_S), holder="", payloads=payloads)


def _payloads(annotations: dict[str, Json]) -> tuple[LeasePayload, ...]:
    former = (LeasePayload(_FORMER_KIND, each) for each in _listed(annotations.get(_FORMER_PAYLOADS)))
    return tuple(dict.fromkeys((*former, *map(LeasePayload.parse, _listed(annotations.get(PAYLOADS))))))


def _listed(value: Json) -> tuple[str, ...]:
    return tuple(each for each in str(value or "").split(",") if each)


def micro_time(moment: datetime) -> str:
    """Return a moment in UTC as the API server writes it in a Lease."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class LeaseObserver:
    """Tells whether a holder has not renewed its Lease within the duration that the Lease names.

    The clocks of two machines may differ by minutes, so the time in the Lease is only compared with itself: what counts
    is how long we have seen it unchanged.
    """

    def __init__(self) -> None:
        self._seen: tuple[str, str] | None = None
        self._since = 0.0

    def is_dead(self, lease: Lease, now: float) -> bool:
        if (lease.holder, lease.renewed) != self._seen:
            self._seen, self._since = (lease.holder, lease.renewed), now
        return now - self._since > lease.duration_s


def _mapping(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


class LeaseFailed(GarboardError):
    """The Lease did not become free in time."""

    default_class = "lease"


class LeaseLost(GarboardError):
    """Another holder has been seen: whatever the Lease protects may be changed by that one now."""

    default_class = "lease-lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseClaim:
    """Which holder wants which Lease; `payload` is stored in the Lease, for the next holder if this one dies.

    `duration_s` is how long the Lease stays with a holder that does not renew it. `former_name` is the name that
    earlier releases gave the Lease: who holds that one is waited for, too.
    """

    name: str
    namespace: str
    holder: str
    payload: LeasePayload | None = None
    duration_s: float = DURATION_S
    former_name: str = ""

    def __str__(self) -> str:
        return f"Lease {self.namespace}/{self.name}"

    @property
    def ref(self) -> ObjectRef:
        return ObjectRef("Lease", self.namespace, self.name, API_VERSION)

    @property
    def former_ref(self) -> ObjectRef:
        return ObjectRef("Lease", self.namespace, self.former_name, API_VERSION)

    def find_former(self, client: KubeClient) -> Lease | None:
        """Return the Lease that an earlier release has made, whoever holds it."""
        found = client.find("Lease", self.namespace, self.former_name) if self.former_name else None
        return Lease.read(found) if found else None

    def refuse_other(self, lease: Lease | None, token: int) -> None:
        """Raise if the Lease, as it was found, is not ours with this token."""
        if lease is None:
            found = "it was deleted"
        elif lease.holder == self.holder and lease.transitions == token:
            return
        else:
            found = f"it is held by {lease.holder or 'nobody'} (token {lease.transitions}, ours was {token})"
        raise LeaseLost(
            f"{self} was lost: {found}",
            hint="another node is changing what this run was about to change: wait for it",
        )

    def find(self, client: KubeClient) -> Lease | None:
        """Return the Lease as the API server holds it, whoever holds it."""
        found = client.find("Lease", self.namespace, self.name)
        return Lease.read(found) if found else None

    def replace(self, client: KubeClient, lease: Lease) -> None:
        """Write the Lease, unless it has been changed since it was read."""
        client.replace(self.ref, lease.content(self.name, self.namespace))

    def acquired(self, lease: Lease | None, former: Lease | None = None) -> Lease:
        """Return the Lease as ours, with the payloads of earlier holders that did not release it."""
        before = (*(former.payloads if former else ()), *(lease.payloads if lease else ()))
        own = (self.payload,) if self.payload else ()
        return Lease(
            version=lease.version if lease else "",
            holder=self.holder,
            duration_s=self.duration_s,
            renewed=micro_time(datetime.now(UTC)),
            payloads=tuple(dict.fromkeys((*before, *own))),
            transitions=lease.transitions + (lease.holder != self.holder) if lease else 0,
        )
