"""`change restart`: a component starts again, gated, because a file that it reads only at its start has changed."""

from garboard.change.outcomes import HAS_FOLLOW_UPS, IS_DONE
from garboard.change.record import refuse_unfinished
from garboard.change.restarting import RESTARTABLE, restart_plan
from garboard.change.snapshot import ClusterSnapshot
from garboard.engine import ClusterPlan, NodePart, Plan
from garboard.errors import BadUsage, GarboardError, NotReady
from garboard.node.change_apply_run import (
    ChangedNode,
    carry_out_on_node,
    changed_node,
    reserved_for_change,
    run_options,
)
from garboard.node.change_apply_via import begin, coordinator_of
from garboard.node.change_observe import observe_cluster
from garboard.node.change_record import read_record
from garboard.node.interpreters.leases import LeaseToken
from garboard.node.tokens import find_kubeconfig
from garboard.node.via import Via
from garboard.node.workflow import LocalNode
from garboard.node.workflow import plan_text as steps_text
from garboard.phases.static_pods import ORDER
from garboard.values import dataclass

COMMAND = "change restart"


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartRequest:
    """Which component, and how."""

    component: str
    kubeconfig: str | None = None
    is_asked: bool = True
    is_shown: bool = False
    lease: LeaseToken | None = None


def restart_here(asked: RestartRequest, local: LocalNode) -> int:
    """Restart a component of this node; 12 if other nodes have it, too."""
    node = changed_node(local, asked.kubeconfig)
    if asked.is_shown:
        plan, _, _ = _planned(asked, node)
        local.reporter.show(steps_text(plan, "text"))
        return IS_DONE
    with reserved_for_change(local, COMMAND):
        local.refuse_open_run()
        plan, snapshot, others = _planned(asked, node)
        _confirm(asked, local, f"restart {asked.component} on {node.name}")
        carry_out_on_node(plan, node, node.settings(snapshot, asked.lease), run_options(COMMAND))
    local.reporter.report(f"[{COMMAND}] {asked.component} has started again on {node.name}")
    if not others or asked.lease is not None:
        return IS_DONE
    lines = "".join(f"  on {each}  garboard {COMMAND} {asked.component} --yes\n" for each in others)
    local.reporter.show(f"\nThe other nodes follow in this order:\n\n{lines}")
    return HAS_FOLLOW_UPS


def _planned(asked: RestartRequest, node: ChangedNode) -> tuple[Plan, ClusterSnapshot, tuple[str, ...]]:
    if node.is_control_plane:
        refuse_unfinished(read_record(node.cluster))
    observed = observe_cluster(node.kubeconfig)
    snapshot = observed.snapshot
    plan = restart_plan(asked.component, snapshot, node.name)
    return plan, snapshot, tuple(each for each in _nodes(asked.component, snapshot) if each != node.name)


def _nodes(component: str, snapshot: ClusterSnapshot) -> tuple[str, ...]:
    nodes = snapshot.control_planes if component in ORDER else snapshot.in_order()
    return tuple(each.name for each in nodes if component not in ORDER or component in each.mirror_pods)


def restart_via(asked: RestartRequest, via: Via, local: LocalNode) -> int:
    """Restart a component on all nodes that have it, one after the other."""
    if asked.component not in RESTARTABLE:
        raise BadUsage(f"{asked.component} is no component", hint=f"it is one of {', '.join(RESTARTABLE)}")
    admin = find_kubeconfig(asked.kubeconfig)
    coordinator = coordinator_of(local, via, admin)
    with admin.connect() as client:
        refuse_unfinished(read_record(client))
    names = _nodes(asked.component, observe_cluster(admin.path).snapshot)
    if not names:
        raise NotReady(f"no node has a {asked.component}", hint="kubectl get pods -n kube-system -o wide")
    words = ("change", "restart", asked.component, "--yes")
    plan = ClusterPlan(tuple(NodePart(node=each, words=words) for each in names))
    if asked.is_shown:
        local.reporter.show("".join(f"{each}: garboard {' '.join(words)}\n" for each in names))
        return IS_DONE
    _confirm(asked, local, f"restart {asked.component} on {', '.join(names)}")
    begin(coordinator, COMMAND, plan)
    local.reporter.report(f"[{COMMAND}] {asked.component} has started again on {len(names)} nodes")
    return IS_DONE


def _confirm(asked: RestartRequest, local: LocalNode, what: str) -> None:
    if not asked.is_asked:
        return
    if local.reporter.ask(f"[{COMMAND}] {what}? [y/N]: ").strip().lower() not in ("y", "yes"):
        raise GarboardError("the restart was not confirmed", hint="nothing was changed; --yes does not ask")
