"""The nodes of a cluster in the order in which they are upgraded, and the commands that do it on each of them."""

from collections.abc import Iterable, Sequence

from garboard.engine import ClusterPlan, NodePart, ShowMessage, Step
from garboard.phases.upgrade.cluster import ClusterNode
from garboard.phases.upgrade.context import UpgradeContext

_NODE_COMMAND = ("upgrade", "node")


def in_order(nodes: Iterable[ClusterNode], first: str = "") -> tuple[ClusterNode, ...]:
    """Return control planes before workers, `first` before all others if it is a control plane."""
    return tuple(sorted(nodes, key=lambda each: (not each.is_control_plane, each.name != first, each.name)))


def plan_cluster(
    nodes: Iterable[ClusterNode], version: str, flags: Sequence[str], node_flags: Sequence[str], *, first: str = ""
) -> ClusterPlan:
    """Plan `upgrade apply` on the first control plane and `upgrade node` on all others, one after the other."""
    head, *others = in_order(nodes, first)
    words = ("upgrade", "apply", version, "--yes", *flags)
    rest = (NodePart(node=each.name, words=(*_NODE_COMMAND, *node_flags)) for each in others)
    return ClusterPlan((NodePart(node=head.name, words=words), *rest))


def cluster_plan_text(plan: ClusterPlan) -> str:
    """Return the commands of a plan, one node in a line."""
    lines = (f"{each.node}: garboard {' '.join(each.words)}" for each in plan.parts if isinstance(each, NodePart))
    return "".join(f"{number}. {line}\n" for number, line in enumerate(lines, start=1))


def plan_next_nodes(context: UpgradeContext) -> Iterable[Step]:
    """Plan to say with which commands the other nodes follow, in their order."""
    others = [each for each in in_order(context.upgraded.nodes) if each.name != context.node_name]
    if not others or context.options.is_coordinated:
        return
    directory = context.options.patches_directory
    patches = f" --patches {directory}" if directory else ""
    lines = "".join(f"  on {each.name}:  garboard upgrade node{patches}\n" for each in others)
    version = context.cluster.kubernetes_version
    text = (
        f"\n{context.node_name} runs {version}. The other nodes follow in this order:\n\n{lines}\n"
        f"or all of them from here:\n\n  garboard upgrade apply {version} --yes{patches} --via 'ssh {{node}} sudo'\n"
    )
    yield Step(ShowMessage(about="the commands for the other nodes", text=text), "they still run the former version")
