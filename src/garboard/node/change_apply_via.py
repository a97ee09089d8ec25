"""A change carried to all nodes from one machine, through the operator's command: one node after the other."""

import socket
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from garboard.change.confirming import refuse_unconfirmable
from garboard.change.coordinated import begins_on, coordinated_plan, handed_change
from garboard.change.drift_request import DriftRequest
from garboard.change.outcomes import (
    IS_DONE,
    ChangeBlocked,
    ChangeInProgress,
    ChangeNeedsHelp,
    ChangeRolledBack,
    ChangeStale,
)
from garboard.change.planning import plan_change
from garboard.change.record import refuse_unfinished
from garboard.change.rollout import Rollout, refuse_blocked
from garboard.change.show import is_shown_alike, plan_text
from garboard.change.snapshot import ClusterSnapshot
from garboard.engine import ClusterPlan, cluster_plan_as_text
from garboard.errors import GarboardError, NotReady
from garboard.kube import read_access
from garboard.model.paths import KUBELET_CONF
from garboard.node.change_apply import (
    ApplyRequest,
    confirm_plan,
    from_elsewhere,
    is_needless,
    options_of,
    stale_request,
)
from garboard.node.change_drift import observe_for, resolved
from garboard.node.change_record import read_record
from garboard.node.coordination import coordinator_on
from garboard.node.coordinator import Coordinator, CoordinatorOptions, CoordinatorStopped
from garboard.node.interpreters.objects import NodeCluster
from garboard.node.own_node import own_name
from garboard.node.tokens import AdminKubeconfig, find_kubeconfig
from garboard.node.via import Via
from garboard.node.wiring import RunSettings
from garboard.node.workflow import LocalNode
from garboard.values import dataclass

_COMMANDS = ("change apply", "change rollback", "change restart")
_LEASE_WITHIN_S = 10.0
_PLANNED_AT_MOST = 3  # times, while what it is planned from moves


def apply_via(asked: ApplyRequest, via: Via, local: LocalNode) -> int:
    """Plan what is asked for, and have every node do its part; return the exit code."""
    admin = find_kubeconfig(asked.kubeconfig)
    coordinator = coordinator_of(local, via, admin, waits=asked.waits)
    if not asked.is_shown:
        _refuse_open(coordinator, asked)
    rollout, handed = _planned(asked, admin, local)
    if is_needless(asked, rollout):
        return _nothing_to_do(asked, local)
    if asked.is_shown:
        plan = coordinated_plan(rollout, handed)
        local.reporter.show(f"{plan_text(rollout.plan)}\nCommands on the nodes:\n\n{cluster_plan_as_text(plan)}")
        return IS_DONE
    confirm_plan(asked, rollout, local)
    abandon_open(coordinator, local)

    def carry_out(planned: PlannedChange) -> None:
        # Each attempt has connections of its own.
        begin(coordinator_of(local, via, admin, waits=asked.waits), asked.command, planned.on_nodes)

    def plan_again() -> PlannedChange:
        return PlannedChange(*_planned(asked, admin, local))

    return carry_out_planned(asked, PlannedChange(rollout, handed), carry_out, plan_again, local)


def _nothing_to_do(asked: ApplyRequest, local: LocalNode) -> int:
    local.reporter.report(f"[{asked.command}] nothing to do: the cluster is as it is asked for")
    return IS_DONE


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """What is done on all nodes, and the change as it is handed to the first of them."""

    rollout: Rollout
    handed: bytes

    @property
    def on_nodes(self) -> ClusterPlan:
        return coordinated_plan(self.rollout, self.handed)


def carry_out_planned(
    asked: ApplyRequest,
    planned: PlannedChange,
    carry_out: Callable[[PlannedChange], None],
    plan_again: Callable[[], PlannedChange],
    local: LocalNode,
) -> int:
    """Carry out a plan that was confirmed, and return the exit code; one that is stale where it begins is made again.

    The API shows some seconds late what runs on a node: just after a change, the first node may make another plan than
    the machine that tells it. A plan that was saved is carried out as it was reviewed, or not at all.
    """
    for left in reversed(range(_PLANNED_AT_MOST if asked.saved is None else 1)):
        try:
            carry_out(planned)
            break
        except ChangeStale as stop:
            if not left:
                raise
            local.reporter.report(f"[{asked.command}] the plan is stale on {planned.rollout.here}: planning again")
            again = _after(stop, plan_again)
            if again.handed == planned.handed:
                raise
        if is_needless(asked, again.rollout):  # somebody else has done it meanwhile
            return _nothing_to_do(asked, local)
        if not is_shown_alike(again.rollout.plan, planned.rollout.plan):
            confirm_plan(asked, again.rollout, local)
        planned = again
    local.reporter.report(f"[{asked.command}] revision {planned.rollout.revision.number} is done on all nodes")
    return IS_DONE


def _after(stop: ChangeStale, plan_again: Callable[[], PlannedChange]) -> PlannedChange:
    """Return a plan that is made because of a stop; an error of making it leads back to that."""
    try:
        return plan_again()
    except GarboardError as error:
        # A cause that the error has already was raised while the stop was handled, so that its context is the stop.
        raise error from error.__cause__ or stop


def coordinator_of(local: LocalNode, via: Via, admin: AdminKubeconfig, *, waits: bool = False) -> Coordinator:
    """Return the coordinator of this machine for the cluster of a kubeconfig."""
    options = CoordinatorOptions() if waits else CoordinatorOptions(lease_within_s=_LEASE_WITHIN_S)
    settings = RunSettings(kubeconfig=admin.path, node_name=_own_name(local, admin) or socket.gethostname())
    return coordinator_on(local, via, settings, options)


def _own_name(local: LocalNode, admin: AdminKubeconfig) -> str:
    """Return the name of this machine among the nodes of the cluster; empty if it is none of them."""
    if local.machine.read(KUBELET_CONF) is None:
        return ""
    return own_name(local.machine, read_access(admin.data, admin.path, admin.read).ca)


def _planned(asked: ApplyRequest, admin: AdminKubeconfig, local: LocalNode) -> tuple[Rollout, bytes]:
    """Look at the cluster; return what would be done, and the change as it is handed to the first node."""
    record = read_record(NodeCluster(local.machine, admin.path, "", report=local.reporter.report))
    if not asked.replaces_unfinished or record.is_beginning:
        refuse_unfinished(record)
    request = asked.find_request(record) if asked.find_request else asked.request
    observed = observe_for(request, admin.path, saved=asked.saved)
    local.warn(observed.notes)
    first, intent = _first(asked, observed.snapshot, observed.here), asked.intent
    if asked.saved is not None:
        request, intent = stale_request(asked.saved, asked.request, intent, observed)
    assert request is not None, "a command says what it asks for"
    if isinstance(request, DriftRequest) and request.policy == "adopt":
        request = resolved(request, observed)  # it is recorded as it was seen here
    change = resolved(request, observed)
    plan = plan_change(observed.snapshot, change, options=options_of(intent, first))
    if (other := begins_on(plan, observed.snapshot, first)) != first:
        first = other
        plan = plan_change(observed.snapshot, change, options=options_of(intent, first))
    local.warn(plan.warnings)
    if plan.verdict != "none":
        refuse_blocked(plan)
    if intent.confirm.confirm_s:
        refuse_unconfirmable(plan)
    rollout = Rollout(
        plan=plan, snapshot=observed.snapshot, here=first, intent=intent, now=datetime.now(UTC), record=record
    )
    # The plan as the first node can make it again, without the files that only this machine has seen.
    seen = from_elsewhere(observed.snapshot)
    as_saved = options_of(replace(intent, drains=False), first)
    expected = plan_change(seen, resolved(request, observed, seen), options=as_saved)
    return rollout, handed_change(rollout, request, expected, replaces_unfinished=asked.replaces_unfinished)


def _first(asked: ApplyRequest, snapshot: ClusterSnapshot, here: str) -> str:
    """Return the control plane where it begins: that of a saved plan, else this one, else the first."""
    names = [each.name for each in snapshot.control_planes]
    if not names:
        raise NotReady("the cluster has no node that is labelled as a control plane", hint="kubectl get nodes")
    planned = asked.saved.first if asked.saved else ""
    return next((each for each in (planned, here) if each in names), names[0])


def _refuse_open(coordinator: Coordinator, asked: ApplyRequest) -> None:
    """Refuse to begin while an earlier change from here is half done; a rollback takes its place."""
    for each in coordinator.records():
        if each.is_open and not (asked.replaces_unfinished and each.command in _COMMANDS):
            raise ChangeInProgress(
                f"{each.command} ({each.name}) was cut short; left are {', '.join(each.left)}",
                hint="garboard change resume goes on with it, garboard change rollback REV --via takes it back",
            )


def abandon_open(coordinator: Coordinator, local: LocalNode) -> None:
    """Close the records of changes that something else takes the place of."""
    for each in coordinator.records():
        if each.is_open and each.command in _COMMANDS:
            coordinator.abandon(each.name)
            local.reporter.report(f"[coordinator] {each.name} is not resumed any more")


def begin(coordinator: Coordinator, command: str, plan: ClusterPlan) -> None:
    """Carry a plan out; how it stopped is told by the exit code of the error."""
    try:
        coordinator.begin(command, plan)
    except CoordinatorStopped as error:
        raise stopped(coordinator, error) from error
    except GarboardError as error:
        if error.error_class in ("lease", "half-changed", "coordinator-open", "locked"):
            raise ChangeInProgress(error.message, hint=error.hint) from error
        raise


def resume(coordinator: Coordinator, name: str) -> None:
    try:
        coordinator.resume(name)
    except CoordinatorStopped as error:
        raise stopped(coordinator, error) from error


def stopped(coordinator: Coordinator, error: CoordinatorStopped) -> GarboardError:
    """Return how a change has stopped; where its first node has gone back, nothing is left to resume."""
    record = next((each for each in reversed(coordinator.records()) if each.is_open), None)
    if record is None:
        return error
    index = next(index for index, part in enumerate(record.parts) if part.state != "done")
    part = record.parts[index]
    status = part.status or 0
    hint = "garboard change resume goes on from there; garboard change rollback REV --via takes all of it back"
    ended = (ChangeBlocked.exit_code, ChangeRolledBack.exit_code, ChangeInProgress.exit_code)
    is_untouched = part.state == "failed" and status and not part.run
    if index == 0 and (status in ended or is_untouched):
        coordinator.abandon(record.name)
        hint = f"nothing was changed elsewhere; what {record.titles[0]} said above tells why"
    kinds: dict[int, type[GarboardError]] = {
        each.exit_code: each for each in (ChangeBlocked, ChangeRolledBack, ChangeInProgress)
    }
    if index == 0 and is_untouched:  # a node that follows makes its own plan, which is never stale
        kinds[ChangeStale.exit_code] = ChangeStale
        if status not in kinds:
            error.hint = hint
            return error
    return kinds.get(status, ChangeNeedsHelp)(error.message, hint=hint)
