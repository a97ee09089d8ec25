"""Which static pods use renewed files only after a restart: those that read them when they start, and never again."""

from collections.abc import Iterable, Mapping

from garboard.documents import read_yaml
from garboard.model.paths import manifest_path
from garboard.phases.gates import API_SERVER
from garboard.phases.gates.control_plane import component_flags
from garboard.phases.static_pods import ETCD, ORDER, ReplacedPod
from garboard.values import dataclass

_ON_CHANGE = "within a minute of its change"
_CONNECTING = "for every new connection"
# Flags whose files a component reads again by itself, and when. A file of any other flag is read once.
_RELOADED: dict[str, dict[str, str]] = {
    API_SERVER: {
        "tls-cert-file": _ON_CHANGE,
        "tls-private-key-file": _ON_CHANGE,
        "proxy-client-cert-file": _ON_CHANGE,
        "proxy-client-key-file": _ON_CHANGE,
        "kubelet-client-certificate": "within five minutes, when it renews its connections",
        "kubelet-client-key": "within five minutes, when it renews its connections",
        "etcd-certfile": _CONNECTING,
        "etcd-keyfile": _CONNECTING,
    },
    "kube-controller-manager": {"tls-cert-file": _ON_CHANGE, "tls-private-key-file": _ON_CHANGE},
    "kube-scheduler": {"tls-cert-file": _ON_CHANGE, "tls-private-key-file": _ON_CHANGE},
    ETCD: {
        "cert-file": _CONNECTING,
        "key-file": _CONNECTING,
        "peer-cert-file": _CONNECTING,
        "peer-key-file": _CONNECTING,
    },
}


@dataclass(frozen=True, slots=True)
class FileUse:
    """A static pod that has a file in its command line; `reloads` says when it reads it again, if it does."""

    component: str
    flag: str
    path: str
    reloads: str = ""

    def __str__(self) -> str:
        if self.reloads:
            return f"{self.component} reads {self.path} again by itself, {self.reloads} (--{self.flag})"
        return f"{self.component} reads {self.path} only when it starts (--{self.flag})"


def uses_of(paths: Iterable[str], manifests: Mapping[str, bytes]) -> tuple[FileUse, ...]:
    """Return which static pods use some files, by their manifests; once for each component and file."""
    wanted, found = frozenset(paths), dict[tuple[str, str], FileUse]()
    for component in ORDER:
        for flag, value in _flags(component, manifests.get(component, b"{}")).items():
            if value in wanted:
                use = FileUse(component, flag, value, _RELOADED[component].get(flag, ""))
                known = found.get((component, value))
                if known is None or (known.reloads and not use.reloads):
                    found[component, value] = use
    return tuple(found.values())


def restarted_pods(uses: Iterable[FileUse], manifests: Mapping[str, bytes]) -> list[ReplacedPod]:
    """Return all static pods of a node; those that would not see a new file by themselves say why they restart."""
    causes = {use.component: str(use) for use in reversed([*uses]) if not use.reloads}
    return [
        ReplacedPod(component=name, former=data, manifest=data, restart_cause=causes.get(name, ""))
        for name, data in manifests.items()
    ]


def _flags(component: str, manifest: bytes) -> dict[str, str]:
    document = read_yaml(manifest, source=manifest_path(component))
    return component_flags(document, component) if isinstance(document, dict) else {}
