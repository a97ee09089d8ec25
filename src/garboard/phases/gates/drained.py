"""A node without the pods that could run elsewhere, and which of its pods these are."""

from collections.abc import Iterable, Iterator
from typing import ClassVar

from garboard.documents import Json
from garboard.engine import Evidence, Gate, Probe, Tagged
from garboard.phases.gates.evidence import probe_safely
from garboard.phases.gates.view import NodeView
from garboard.retry import Pauses
from garboard.values import dataclass

_MIRROR = "kubernetes.io/config.mirror"
_ENDED = ("Succeeded", "Failed")
_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDrained(Gate):
    """No pod is left on a node but its static pods and those of DaemonSets."""

    pauses: ClassVar[Pauses] = Pauses.every(1.0)
    node_name: str
    timeout_s: float

    @property
    def name(self) -> str:
        return f"Node {self.node_name} to be drained"

    def describe(self) -> dict[str, Json]:
        return {"kind": "Node", "name": self.node_name, "pods": "none but static ones and those of DaemonSets"}

    def probe(self, view: NodeView, /) -> Probe:
        fields = f"spec.nodeName={self.node_name}"
        return lambda: probe_safely(lambda: _left(view.list_all("Pod", fields=fields), self.node_name))

    def evidence(self, view: NodeView, /) -> Evidence:
        return Evidence(next_command=f"kubectl get pods -A --field-selector spec.nodeName={self.node_name}")


def _left(pods: Iterable[dict[str, Json]], node_name: str) -> str | None:
    found = [name_of(pod) for pod in evictable(pods, node_name)]
    return f"{len(found)} pods are left: {shortened(found)}" if found else None


def shortened(names: list[str]) -> str:
    """Return names as a list that is not too long to read."""
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


def evictable(pods: Iterable[dict[str, Json]], node_name: str) -> Iterator[dict[str, Json]]:
    """Yield the pods of a node that have to go when it is drained."""
    for pod in pods:
        if _member(pod, "spec").get("nodeName") == node_name and not _stays(pod):
            yield pod


def _stays(pod: dict[str, Json]) -> bool:
    annotations = _member(_member(pod, "metadata"), "annotations")
    return _MIRROR in annotations or controller_of(pod) == "DaemonSet"


def has_ended(pod: dict[str, Json]) -> bool:
    return _member(pod, "status").get("phase") in _ENDED


def controller_of(pod: dict[str, Json]) -> str:
    """Return the kind of the object that makes another pod in place of this one; empty if there is none."""
    owners = _member(pod, "metadata").get("ownerReferences")
    for owner in owners if isinstance(owners, list) else ():
        if isinstance(owner, dict) and owner.get("controller") is True:
            return str(owner.get("kind"))
    return ""


def loses_data(pod: dict[str, Json]) -> bool:
    """Say whether a pod has a volume that goes with it."""
    volumes = _member(pod, "spec").get("volumes")
    return isinstance(volumes, list) and any(isinstance(each, dict) and "emptyDir" in each for each in volumes)


def name_of(pod: dict[str, Json]) -> str:
    metadata = _member(pod, "metadata")
    return f"{metadata.get('namespace')}/{metadata.get('name')}"


def _member(document: dict[str, Json], key: str) -> dict[str, Json]:
    found = document.get(key)
    return found if isinstance(found, dict) else {}


JOURNAL_TYPES = (Tagged("node-drained", NodeDrained),)
