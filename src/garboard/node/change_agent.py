"""`change agent`: a timer of this node that follows changes unattended, and the policy that it does not act without."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from garboard.change.write_policy import (
    API,
    BINDING_KIND,
    POLICY,
    POLICY_KIND,
    PROBE,
    TAKES_EFFECT_WITHIN_S,
    policy_objects,
    policy_problem,
    revision_problem,
)
from garboard.documents import Json
from garboard.engine import DeleteObject, Plan, PutObject, Step
from garboard.errors import GarboardError, NotReady
from garboard.manifests.objects import KUBE_SYSTEM
from garboard.manifests.timers import TimedCommand, unit_paths
from garboard.model.paths import ADMIN_CONF
from garboard.node.change_arming import own_kubeconfig, own_program
from garboard.node.interpreters.objects import NodeCluster
from garboard.node.transaction import RunOptions
from garboard.node.wiring import RunSettings
from garboard.node.workflow import LocalNode, carry_out
from garboard.phases.node.timers import plan_timer, plan_timer_removal
from garboard.phases.revision import TARGET as TARGET_NAME
from garboard.phases.revision import ChangeTarget, NodeReport, read_target, revision_name
from garboard.phases.upgrade.context import node_name_of
from garboard.retry import CLOCK, Clock, Pauses, wait_until
from garboard.values import dataclass

TIMER = "garboard-change-agent"
WORDS = ("change", "node", "--yes", "--unattended")
EVERY_S = 60
_PHASE, _POLICY_PHASE = "agent", "policy"
_IN_FORCE_WITHIN_S, _PAUSES = 60.0, Pauses.every(0.5)


class RevisionUnprotected(NotReady):
    """The agent does not act: anybody might have written what it is asked to do."""

    default_class = "unprotected"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStatus:
    """Whether this node follows changes by itself, and what keeps it from that."""

    node: str
    is_installed: bool
    is_enabled: bool
    policy_problem: str  # empty if only administrators write revisions
    report: str  # what the node has reported last; empty if nothing

    @property
    def acts(self) -> bool:
        return self.is_enabled and not self.policy_problem

    def document(self) -> dict[str, Json]:
        return {
            "node": self.node,
            "installed": self.is_installed,
            "enabled": self.is_enabled,
            "policy": self.policy_problem or "in force",
            "acts": self.acts,
            "report": self.report,
        }


def install_agent(node: LocalNode, *, every_s: int = EVERY_S, clock: Clock = CLOCK) -> None:
    """Put the policy into the cluster if this is a control plane, wait until it is in force, and enable the timer.

    A worker may not write the policy: it only looks whether it is there.
    """
    program, name = own_program(), node_name_of(node.machine)
    cluster = _cluster(node)
    with node.reserved("change agent install", is_whole=False):
        node.refuse_open_run()
        if own_kubeconfig(node) == ADMIN_CONF:
            _install_policy(node, name, cluster, clock)
        elif problem := policy_problem(*_policy(cluster)):
            raise RevisionUnprotected(
                f"{problem}: without it anybody who writes ConfigMaps of kube-system would be root here",
                hint="on a control-plane node: garboard change agent install",
            )
        _carry_out(Plan(_placed(plan_timer(_timed(program, every_s), _WHY), name)), node, name, "change agent install")


_WHY = "the node follows changes of its cluster by itself"


def _timed(program: str, every_s: int) -> TimedCommand:
    return TimedCommand(
        name=TIMER,
        summary="do this node's part of a change of its cluster",
        command=(program, *WORDS),
        every_s=every_s,
        spread_s=max(1, every_s // 6),
    )


def _install_policy(node: LocalNode, name: str, cluster: NodeCluster, clock: Clock) -> None:
    """Write what is missing; a policy that is another one is left to people, who know why it is so."""
    policy, binding = _policy(cluster)
    if policy and binding and (problem := policy_problem(policy, binding)):
        raise RevisionUnprotected(
            problem,
            hint=f"find out who changed it; then kubectl delete {POLICY_KIND.lower()},{BINDING_KIND.lower()} {POLICY}",
        )
    missing = [each for each in policy_objects() if not _find(cluster, each.kind, each.name, each.api_version)]
    puts = (Step(PutObject.of(each.content), "nobody but administrators may write revisions") for each in missing)
    if steps := _placed(puts, name, phase=_POLICY_PHASE):
        _carry_out(Plan(steps), node, name, "change agent install")
        node.reporter.report("[policy] waiting until the API server refuses what the policy forbids")
    _await_force(cluster, clock)
    if steps:
        clock.sleep(TAKES_EFFECT_WITHIN_S)


def _await_force(cluster: NodeCluster, clock: Clock) -> None:
    """Try to make what nobody may make until that is refused by the policy: then the API server goes by it."""
    probe = PutObject.of({"apiVersion": "v1", "kind": "ConfigMap", "metadata": _named(PROBE)})
    gone = DeleteObject(api_version="v1", kind="ConfigMap", name=PROBE, namespace=KUBE_SYSTEM)

    def problem() -> str | None:
        try:
            cluster.put(probe)
        except GarboardError as error:
            return None if POLICY in error.message else error.message
        cluster.delete(gone)
        return "the API server does not go by the policy yet"

    if found := wait_until(problem, timeout_s=_IN_FORCE_WITHIN_S, pauses=_PAUSES, clock=clock):
        raise RevisionUnprotected(found, hint=f"kubectl get {POLICY_KIND.lower()} {POLICY} -o yaml")


def _named(name: str) -> dict[str, Json]:
    return {"name": name, "namespace": KUBE_SYSTEM}


def uninstall_agent(node: LocalNode, *, removes_policy: bool = False) -> bool:
    """Remove the timer, and the policy if that is asked for; return whether there was anything to remove."""
    name = node_name_of(node.machine)
    steps: list[Step] = []
    if _is_installed(node):
        steps += _placed(plan_timer_removal(TIMER, "the node follows changes only when somebody tells it to"), name)
    if removes_policy:
        found = [each for each in policy_objects() if _find(_cluster(node), each.kind, each.name, each.api_version)]
        gone = (
            Step(DeleteObject(api_version=each.api_version, kind=each.kind, name=each.name), "no agent needs it")
            for each in reversed(found)
        )
        steps += _placed(gone, name, phase=_POLICY_PHASE)
    if steps:
        with node.reserved("change agent uninstall", is_whole=False):
            node.refuse_open_run()
            _carry_out(Plan(tuple(steps)), node, name, "change agent uninstall")
    return bool(steps)


def agent_status(node: LocalNode) -> AgentStatus:
    """Look at the timer, the policy and the report of this node."""
    cluster, name = _cluster(node), node_name_of(node.machine)
    report = NodeReport.of_node(cluster.find("Node", "", name))
    manager = node.machine.manager
    return AgentStatus(
        node=name,
        is_installed=_is_installed(node),
        is_enabled=manager is not None and manager.is_timer_enabled(TIMER),
        policy_problem=policy_problem(*_policy(cluster)) or "",
        report=str(report) if report else "",
    )


def is_waited_for(node: LocalNode) -> bool:
    """Whether there is a target that this node has to follow; one that may be anybody's is refused.

    This is asked every minute on every node: two requests while there is nothing to do.
    """
    cluster, name = _cluster(node), node_name_of(node.machine)
    found = cluster.find("ConfigMap", KUBE_SYSTEM, TARGET_NAME)
    target = read_target(found)
    if target is None or name not in target.nodes or target.is_settled or target.state in ("reverting", "reverted"):
        return False
    report = NodeReport.of_node(cluster.find("Node", "", name))
    if report is not None and report.says(target) in ("done", "confirmed", "failed", "reverted"):
        return False  # what has failed here is looked at by people first
    _require_protected(cluster, target)
    return True


def _require_protected(cluster: NodeCluster, target: ChangeTarget) -> None:
    revision = cluster.find("ConfigMap", KUBE_SYSTEM, revision_name(target.revision))
    if revision is None:
        raise RevisionUnprotected(f"there is no revision {target.revision}, which the target names")
    if problem := revision_problem(*_policy(cluster), revision):
        raise RevisionUnprotected(
            f"the agent does not act on revision {target.revision}: {problem}",
            hint="have a look at it, then garboard change node --yes does what it says on this node",
        )


def _policy(cluster: NodeCluster) -> tuple[Mapping[str, Json] | None, Mapping[str, Json] | None]:
    return _find(cluster, POLICY_KIND, POLICY, API), _find(cluster, BINDING_KIND, POLICY, API)


def _find(cluster: NodeCluster, kind: str, name: str, api_version: str) -> Mapping[str, Json] | None:
    """Return an object; who may not look at the policy is in a cluster that has none."""
    try:
        return cluster.find(kind, "", name, api_version=api_version)
    except GarboardError as error:
        if error.error_class == "forbidden":
            return None
        raise


def _is_installed(node: LocalNode) -> bool:
    return any(node.machine.read(path) is not None for path in unit_paths(TIMER))


def _cluster(node: LocalNode) -> NodeCluster:
    return NodeCluster(node.machine, own_kubeconfig(node), "", report=node.reporter.report)


def _placed(steps: Iterable[Step], name: str, *, phase: str = _PHASE) -> tuple[Step, ...]:
    return tuple(replace(each, phase=phase, node=name) for each in steps)


def _carry_out(plan: Plan, node: LocalNode, name: str, command: str) -> None:
    settings = RunSettings(kubeconfig=own_kubeconfig(node), node_name=name)
    carry_out(plan, node, settings, RunOptions(command=command, is_whole=False))
