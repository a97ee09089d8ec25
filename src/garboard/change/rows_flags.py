"""Rows about single flags of the control plane, by component: data, beside the flags that each minor has.

A name may hold `*`. A flag without a row is allowed for the components of Kubernetes; of etcd it is a restart, too.
"""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cache

from garboard.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagRow:
    """What speaks against changing a flag; `judge` names what looks closer at the values."""

    code: str
    why: str
    route: str = ""
    follow_ups: tuple[str, ...] = ()
    judge: str = ""


_OWNED = "another field of the configuration, or the node itself, decides it"
_NO_ROUTE = "leave the flag out, and change the field that decides it"
_ROTATION = "add the new key beside the old one, restart all, let the new one sign, and drop the old one last"
_API_SERVER: Mapping[str, FlagRow] = {
    "etcd-servers etcd-prefix storage-backend secure-port advertise-address service-cluster-ip-range client-ca-file"
    " tls-cert-file tls-private-key-file requestheader-* proxy-client-* kubelet-client-*": FlagRow(
        code="owned-flag", why=_OWNED, route=_NO_ROUTE
    ),
    "service-account-issuer": FlagRow(
        code="service-account-issuer",
        why="tokens of an issuer that is not in the list are refused",
        route="keep the former issuer as a second one until the longest token has ended",
        judge="issuer",
    ),
    "service-account-key-file service-account-signing-key-file": FlagRow(
        code="service-account-keys", why="to replace the key invalidates every token", route=_ROTATION
    ),
    "enable-admission-plugins disable-admission-plugins": FlagRow(
        code="admission-plugins",
        why="the list replaces kubeadm's own (NodeRestriction), and some plugins need admission-control-config-file",
    ),
    "authorization-mode authorization-config authorization-webhook-*": FlagRow(
        code="authorization", why="who may do what changes for everybody at once; mode and config exclude each other"
    ),
    "anonymous-auth": FlagRow(
        code="anonymous-auth",
        why="the probes of the kubelet are anonymous: /livez answers 401, and the API server is killed; joins with"
        " a token fail as well",
        route="set authentication-config with anonymous requests limited to /livez, /readyz and /healthz",
        judge="anonymous",
    ),
    "authentication-config": FlagRow(
        code="authentication-config",
        why="it excludes oidc-* and anonymous-auth; its content is read again without a restart",
    ),
    "oidc-*": FlagRow(
        code="oidc",
        why="the issuer has to be reachable, and its CA readable in the pod, or the API server does not start",
    ),
    "encryption-provider-config*": FlagRow(
        code="encryption-provider",
        why="it has to be the same on every control plane at each of the stages",
        route="add the key second, restart all; make it first, restart all; write all Secrets again; drop the old key",
    ),
    "audit-*": FlagRow(
        code="audit-log",
        why="the policy is mounted read-only and read at the start only, and the folder of the log has to be writable",
        judge="audit",
    ),
    "feature-gates runtime-config": FlagRow(
        code="feature-gates",
        why="gates are turned on in the API server first, then in kube-controller-manager and kube-scheduler, then in"
        " kubelets; off in the reverse order. A group of the API that is turned off strands what is stored of it",
    ),
    "service-node-port-range": FlagRow(
        code="node-ports", why="Services keep the ports that they have", judge="node-ports"
    ),
}
_MANAGER: Mapping[str, FlagRow] = {
    "cluster-cidr allocate-node-cidrs service-cluster-ip-range root-ca-file cluster-signing-* kubeconfig"
    " authentication-kubeconfig authorization-kubeconfig client-ca-file requestheader-client-ca-file": FlagRow(
        code="owned-flag", why=_OWNED, route=_NO_ROUTE
    ),
    "service-account-private-key-file": FlagRow(
        code="service-account-keys", why="to replace the key invalidates every token", route=_ROTATION
    ),
    "controllers": FlagRow(code="controllers", why="it has to keep bootstrapsigner and tokencleaner, or joins stop"),
    "node-monitor-grace-period": FlagRow(
        code="health-timing", why="it has to stay well above nodeStatusUpdateFrequency of the kubelets"
    ),
    "feature-gates": FlagRow(code="feature-gates", why="turn gates on in the API server first, and off there last"),
}
_SCHEDULER: Mapping[str, FlagRow] = {
    "kubeconfig authentication-kubeconfig authorization-kubeconfig": FlagRow(
        code="owned-flag", why=_OWNED, route=_NO_ROUTE
    ),
    "config": FlagRow(
        code="host-path",
        why="the file needs a volume, and has to repeat the kubeconfig and the settings of leader election",
        route="put the file on every control-plane node, and mount it with extraVolumes",
    ),
    "feature-gates": FlagRow(code="feature-gates", why="turn gates on in the API server first, and off there last"),
}
_ETCD: Mapping[str, FlagRow] = {
    "data-dir name initial-* listen-peer-urls force-new-cluster cert-file key-file trusted-ca-file client-cert-auth"
    " peer-cert-file peer-key-file peer-trusted-ca-file peer-client-cert-auth wal-dir config-file": FlagRow(
        code="owned-flag", why=_OWNED, route=_NO_ROUTE
    ),
    "heartbeat-interval election-timeout": FlagRow(
        code="etcd-restart",
        why="members with different times disturb each other: go on without a pause until all have the same",
        judge="members",
    ),
}
_ETCD_DEFAULT = FlagRow(
    code="etcd-restart",
    why="etcd restarts one member at a time, and with each the API server of its node",
    judge="members",
)
_ALLOWED = FlagRow(code="", why="")
_BY_PROGRAM: Mapping[str, Mapping[str, FlagRow]] = {
    "kube-apiserver": _API_SERVER,
    "kube-controller-manager": _MANAGER,
    "kube-scheduler": _SCHEDULER,
    "etcd": _ETCD,
}


@cache
def _patterns(program: str) -> tuple[tuple[str, FlagRow], ...]:
    return tuple((name, row) for names, row in _BY_PROGRAM[program].items() for name in names.split())


def flag_row(program: str, flag: str) -> FlagRow:
    """Return the row of a flag; the first name that fits counts."""
    name = flag if program == "etcd" else flag.replace("_", "-")
    found = next((row for pattern, row in _patterns(program) if fnmatchcase(name, pattern)), None)
    return found or (_ETCD_DEFAULT if program == "etcd" else _ALLOWED)
