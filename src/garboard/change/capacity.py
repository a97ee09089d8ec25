"""Whether pods still fit on their nodes: a kubelet that restarts fails those that do not."""

from collections.abc import Iterator, Mapping

from garboard.change.attribute import AttributeRow
from garboard.change.differences import AttributeChange
from garboard.change.findings import ChangeContext, ChangeFinding
from garboard.change.snapshot import SnapshotNode
from garboard.rules.quantities import amount
from garboard.values import Json, dataclass

_DEFAULT_PODS = 110
_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Surplus:
    """A node that runs more than it would have room for."""

    node: str
    text: str


def judge_capacity(change: AttributeChange, row: AttributeRow, context: ChangeContext) -> list[ChangeFinding]:
    """Say whether a node has less room after a change, and which nodes run more than that."""
    name = change.path[0]
    if not _shrinks(change):
        return [ChangeFinding(reason="the kubelet restarts, node by node; pods keep running, and more fits on a node")]
    unknown = [node.name for node in context.snapshot.nodes if node.pods is None]
    surplus = list(_surplus(name, change, context))
    if unknown:
        reason = f"{row.why}; the pods of {', '.join(unknown[:_SHOWN])} were not looked at"
        return [ChangeFinding(code="shrinks-capacity", reason=reason, route="look at all pods first")]
    if not surplus:
        return [ChangeFinding(code="capacity", reason=f"{row.why}; every node has room for what runs there now")]
    told = "; ".join(f"{each.node} {each.text}" for each in surplus[:_SHOWN])
    more = f"; and {len(surplus) - _SHOWN} nodes more" if len(surplus) > _SHOWN else ""
    names = tuple(each.node for each in surplus)
    return [
        ChangeFinding(
            code="shrinks-capacity",
            reason=f"{row.why}: {told}{more}",
            route=f"{', '.join(names[:_SHOWN])}: kubectl drain before the kubelet restarts, kubectl uncordon after it",
            drains=names,
        )
    ]


def _shrinks(change: AttributeChange) -> bool:
    name, before, after = change.path[0], change.before, change.after
    if name == "maxPods":
        return _number(after, _DEFAULT_PODS) < _number(before, _DEFAULT_PODS)
    if name == "podsPerCore":
        return 0 < _number(after, 0) < (_number(before, 0) or float("inf"))
    if name in ("kubeReserved", "systemReserved"):
        return (amount(after) or 0) > (amount(before) or 0)
    return after is not None


def _number(value: Json, default: int) -> float:
    return value if isinstance(value, int | float) and value else default


def _surplus(name: str, change: AttributeChange, context: ChangeContext) -> Iterator[Surplus]:
    for node in context.snapshot.nodes:
        if node.pods is None:
            continue
        if name in ("maxPods", "podsPerCore"):
            yield from _too_many(node, context.target.kubelet.tree)
        elif name in ("kubeReserved", "systemReserved"):
            yield from _too_much(node, change)
        elif node.pods.count:
            yield Surplus(node.name, f"runs {node.pods.count} pods")


def _too_many(node: SnapshotNode, kubelet: Mapping[str, Json]) -> Iterator[Surplus]:
    assert node.pods is not None
    most = _number(kubelet.get("maxPods"), _DEFAULT_PODS)
    per_core = _number(kubelet.get("podsPerCore"), 0)
    if per_core:
        most = min(most, per_core * float(amount(node.capacity.get("cpu", "")) or 0))
    if node.pods.count > most:
        yield Surplus(node.name, f"runs {node.pods.count} pods, {node.pods.count - int(most)} too many")


def _too_much(node: SnapshotNode, change: AttributeChange) -> Iterator[Surplus]:
    assert node.pods is not None
    resource = change.path[-1]
    more = (amount(change.after) or 0) - (amount(change.before) or 0)
    left = (amount(node.allocatable.get(resource, "")) or 0) - more
    requests = node.pods.requests.get(resource, "0")
    if (amount(requests) or 0) > left:
        yield Surplus(node.name, f"has pods that request {requests} of {resource}")
