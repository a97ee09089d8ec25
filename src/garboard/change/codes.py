"""The codes of verdicts: how much each weighs, and what it says. docs/change.md has a line for each of them."""

from collections.abc import Mapping
from enum import IntEnum

from garboard.rules import RESULT_RULES
from garboard.values import dataclass


class Weight(IntEnum):
    """How much stands against a change; the heaviest finding about an attribute decides its verdict."""

    ALLOWED = 0
    NOTE = 1  # advice to read
    CONFIRM = 2  # advice that has to be accepted before it is carried out
    BLOCKED = 3  # not carried out, unless it is accepted
    REFUSED = 4  # not carried out at all

    @property
    def verdict(self) -> str:
        return ("allowed", "advice", "advice", "blocked", "blocked")[self]


@dataclass(frozen=True, slots=True)
class VerdictCode:
    """One code: its weight, and in a line what it means."""

    code: str
    weight: Weight
    summary: str

    @property
    def is_acceptable(self) -> bool:
        return self.weight in (Weight.CONFIRM, Weight.BLOCKED)


_NOTES = {
    "admission-plugins": "plugins replace kubeadm's own list, and some need a configuration file",
    "audit-log": "audit logs need room on the disk, and their policy a restart for every edit",
    "authentication-config": "excludes `oidc-*` and `anonymous-auth`; its content is read again without a restart",
    "authorization": "who may do what changes for everybody at once",
    "capacity": "less fits on a node, and every node has room for what runs there now",
    "certificate-later": "recorded only: it counts when certificates are issued the next time",
    "controllers": "the list replaces kubeadm's own",
    "dns-rollout": "CoreDNS is rolled out anew",
    "etcd-restart": "etcd restarts, one member at a time, with the API server of its node",
    "external-etcd": "the API servers talk to etcd in another way; another store would be another cluster",
    "external-ca": "the key of the authority is not on the node: the certificate is signed elsewhere, and waited for",
    "feature-gates": "gates are turned on in the API server first, then in the others, and off in the reverse order",
    "health-timing": "nodes seem lost if these times do not go together",
    "host-dependent": "the kubelet does not start on a host that does not fit",
    "host-path": "the path has to be there, and of its type, on every control-plane node",
    "image-loss": "images may be deleted or verified anew",
    "image-source": "images are pulled from elsewhere",
    "kubelet-api": "who reaches the kubelet, and how, changes: logs, exec and metrics go that way",
    "new-certificate": "the certificate is issued again on each control-plane node; nothing restarts",
    "new-pods-only": "pods that run keep the former value until they are made anew",
    "no-effect": "nothing that runs reads it",
    "node-ports": "Services keep ports outside of the range",
    "not-looked-at": "it could not be checked from here",
    "oidc": "the issuer has to be reachable, and its CA readable in the pod, or the API server does not start",
    "proxy-address": "load balancers probe this address, and metrics may be seen from outside",
    "proxy-canary": "kube-proxy does not start with a gate that it does not know: one node goes first",
    "proxy-connection": "kube-proxy does not start if the file is not in its pod",
    "proxy-kernel": "it writes settings of the kernel on every host",
    "proxy-mode": "another mode treats NodePorts in another way, and may leave rules behind",
    "proxy-source": "a value that does not match the network breaks masquerading",
    "registration-only": "used when a node registers, and not after that",
    "service-account-issuer": "tokens of the former issuer are refused unless it stays in the list",
    "shadowed-by-flag": "a flag of the kubelet stands above its configuration",
    "shutdown": "the service manager has to allow as long an inhibition",
    "standalone-only": "only a kubelet without an API server reads it",
}
_CONFIRMS = {
    "addon-handover": "an addon is no longer ours, or taken over from somebody else",
    "cgroup-layout": "the cgroups of the node change: it is drained first",
    "cluster-network-mismatch": "two configurations that agreed so far do not any more",
    "drain-needed": "the node is drained, and a state file of the kubelet removed",
    "encryption-provider": "encryption of stored objects takes several steps, the same on every control plane",
    "evicts-pods": "the kubelet may evict pods at once",
    "implied-removal": "the new version leaves out what is set now",
    "pod-range-grows": "the network plug-in has to be changed by its own means",
    "service-account-keys": "replacing the key invalidates every token: add, verify, then switch",
    "shrinks-capacity": "a node that runs more than fits is drained first",
}
_BLOCKED = {
    "cgroup-driver": "has to change together with the container runtime, node by node, both stopped",
    "cluster-name": "a name in every kubeconfig, for little gain",
    "hand-edit": "somebody has changed a manifest by hand, and a component that has to be replaced would lose it",
    "rootless": "alpha, makes users on each host, and is about to be removed",
}
_REFUSED = {
    "anonymous-auth": "the probes of the API server are anonymous: without them it is killed",
    "attach-detach": "volumes would have two owners",
    "certificates-dir": "the files would have to move on every control plane at the same moment",
    "cidr-overlap": "two networks share addresses",
    "conflicting-edit": "a field that is to be changed was changed by hand as well",
    "control-plane-endpoint": "certificates, kubeconfigs and join commands hold the address",
    "dns-domain": "tokens are refused and names lost unless it goes in stages",
    "etcd-data-dir": "etcd would begin an empty cluster there",
    "etcd-move": "moving etcd is a migration of its data",
    "etcd-version": "etcd goes up one minor at a time, and never down",
    "immutable": "fixed once the node is registered",
    "locked-gate": "the gate has one value only",
    "missing-host-path": "a node does not have the file that it would mount",
    "no-quorum": "etcd would lose its majority",
    "node-identity": "it is what the node is known by",
    "node-setting": "one value for all nodes would be wrong",
    "not-applicable": "it is used by init or join, and by nothing that runs",
    "owned-flag": "another field, or the node itself, decides this flag",
    "pod-network": "nodes keep the ranges that they have",
    "san-in-use": "clients reach the API server by this name",
    "service-network": "Services keep the addresses that they have",
    "static-pods-off": "the control plane is static pods",
    "use-algorithm": "deprecated: encryptionAlgorithm says it",
    "use-patches": "patches are changed with --patches",
    "use-upgrade": "versions are changed by an upgrade",
}
# What Kubernetes refuses may be forced where one node that goes first finds out before others follow.
_FORCEABLE = ("bad-flag-value", "flag-conflict", "unknown-feature-gate", "unknown-flag")


def _codes() -> dict[str, VerdictCode]:
    found = {
        code: VerdictCode(code, Weight.BLOCKED if rule.is_acceptable else Weight.REFUSED, rule.summary)
        for code, rule in RESULT_RULES.items()
    }
    found |= {code: VerdictCode(code, Weight.BLOCKED, RESULT_RULES[code].summary) for code in _FORCEABLE}
    for weight, texts in (
        (Weight.NOTE, _NOTES),
        (Weight.CONFIRM, _CONFIRMS),
        (Weight.BLOCKED, _BLOCKED),
        (Weight.REFUSED, _REFUSED),
    ):
        found |= {code: VerdictCode(code, weight, text) for code, text in texts.items()}
    return found


CODES: Mapping[str, VerdictCode] = _codes()
OWN_CODES = tuple(sorted({*_NOTES, *_CONFIRMS, *_BLOCKED, *_REFUSED, *_FORCEABLE}))
