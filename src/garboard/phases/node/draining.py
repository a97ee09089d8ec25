"""Taking a node out of service and back: cordon it, evict its pods, and uncordon it if nobody else had cordoned it."""

from collections.abc import Iterator

from garboard.documents import Json
from garboard.engine import AwaitGate, EvictPods, PatchObject, Step
from garboard.phases.gates import NodeDrained
from garboard.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeScheduling:
    """Whether pods came to a Node when planning looked."""

    name: str
    is_cordoned: bool = False

    @classmethod
    def read(cls, node: dict[str, Json]) -> "NodeScheduling":
        metadata, spec = node.get("metadata"), node.get("spec")
        assert isinstance(metadata, dict), "the API server names every object"
        is_cordoned = isinstance(spec, dict) and spec.get("unschedulable") is True
        return cls(name=str(metadata["name"]), is_cordoned=is_cordoned)


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainSettings:
    """How long a drain may take, and which pods may be lost; without `grace_s` every pod has its own grace period."""

    timeout_s: float = 600.0
    grace_s: int | None = None
    deletes_unmanaged: bool = False
    deletes_empty_dirs: bool = False


def plan_drain(node: NodeScheduling, cause: str, settings: DrainSettings | None = None) -> Iterator[Step]:
    """Plan that no pod comes to the node any more, and that those that could run elsewhere go.

    Undo uncordons the node, unless its owner had cordoned it; pods that have gone do not come back by that.
    """
    of = settings or DrainSettings()
    if not node.is_cordoned:
        yield Step(_scheduling(node, {"unschedulable": True}), cause)
    evicted = EvictPods(
        node_name=node.name,
        timeout_s=of.timeout_s,
        grace_s=of.grace_s,
        deletes_unmanaged=of.deletes_unmanaged,
        deletes_empty_dirs=of.deletes_empty_dirs,
    )
    yield Step(evicted, cause)
    drained = NodeDrained(node_name=node.name, timeout_s=of.timeout_s)
    yield Step(AwaitGate(gate=drained), "what follows would end the pods that are left")


def plan_uncordon(node: NodeScheduling, cause: str) -> Iterator[Step]:
    """Plan that pods come to the node again; one that its owner had cordoned, as found before the drain, stays so."""
    if not node.is_cordoned:
        yield Step(_scheduling(node, {"unschedulable": None}), cause)


def _scheduling(node: NodeScheduling, spec: dict[str, Json]) -> PatchObject:
    return PatchObject(api_version="v1", kind="Node", name=node.name, content={"spec": spec})
