"""`change node`: this node pulls the target with its own credentials, does its part, and reports on its own Node."""

from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from garboard.change.following import FollowingNode, following_plan, parts_of, plan_following
from garboard.change.outcomes import IS_DONE, ChangeInProgress, ChangeNeedsHelp, ChangeRolledBack
from garboard.change.plan import ChangePlan
from garboard.change.rollout import refuse_blocked, report_of
from garboard.change.show import plan_text
from garboard.errors import GarboardError
from garboard.node.change_agent import is_waited_for
from garboard.node.change_apply_run import (
    ChangedNode,
    carry_out_on_node,
    changed_node,
    prepared,
    reserved_for_change,
    run_options,
)
from garboard.node.change_apply_status import settle
from garboard.node.change_arming import armed, settle_arming, waits_to_be_confirmed
from garboard.node.change_drift import drift_in
from garboard.node.change_observe import observe_cluster
from garboard.node.change_record import read_own_record, read_record
from garboard.node.change_signing import refuse_unsigned
from garboard.node.interpreters.leases import LeaseToken
from garboard.node.workflow import LocalNode
from garboard.node.workflow import plan_text as steps_text
from garboard.phases.change_record import ChangeRecord
from garboard.phases.revision import ChangeTarget
from garboard.values import dataclass

COMMAND = "change node"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRequest:
    """How a node follows; it is not told what: that is recorded."""

    kubeconfig: str | None = None
    accepted: tuple[str, ...] = ()
    is_asked: bool = True
    is_shown: bool = False
    lease: LeaseToken | None = None


@dataclass(frozen=True, slots=True)
class _Followed:
    """What a node has to do, and what that was planned from."""

    plan: ChangePlan
    node: FollowingNode


def follow_change(asked: NodeRequest, local: LocalNode) -> int:
    """Do what the target asks of this node, and return the exit code."""
    node = changed_node(local, asked.kubeconfig)
    if asked.is_shown:
        found = _planned(asked, node)
        local.reporter.show(_shown(found, node) if found else "nothing to do\n")
        return IS_DONE
    settle_arming(local)
    if _waits_here(node):
        return IS_DONE
    with reserved_for_change(local, COMMAND):
        local.refuse_open_run()
        found = _planned(asked, node)
        if found is None:
            return IS_DONE
        plan = following_plan(found.node)
        if not plan.steps:
            local.reporter.report(f"[{COMMAND}] {node.name} has revision {found.node.target.revision}")
            return IS_DONE
        _confirm(asked, found, local)
        _carry_out(asked, found, node)
    local.reporter.report(f"[{COMMAND}] {node.name} has revision {found.node.target.revision}")
    return IS_DONE


def follow_unattended(asked: NodeRequest, local: LocalNode) -> int:
    """Do what the target asks of this node if it may be trusted; that it is not this node's turn yet is no failure."""
    if not is_waited_for(local):
        return IS_DONE
    try:
        return follow_change(asked, local)
    except ChangeInProgress as error:
        local.reporter.report(f"[{COMMAND}] later: {error.message}")
        return IS_DONE


def _waits_here(node: ChangedNode) -> bool:
    """Whether this node has done its part, which waits to be confirmed; and say in the target if all have."""
    if not waits_to_be_confirmed(node.local):
        return False
    if node.is_control_plane:
        settle(node.cluster, datetime.now(UTC))
    node.local.reporter.report(f"[{COMMAND}] {node.name} has done its part, which waits to be confirmed")
    return True


def _planned(asked: NodeRequest, node: ChangedNode) -> _Followed | None:
    """Return what this node lacks; None if nothing was ever changed, or what was is taken back."""
    record = read_record(node.cluster) if node.is_control_plane else read_own_record(node.cluster, node.name)
    target = record.target
    if target is None or target.state == "reverted":
        node.local.reporter.report(f"[{COMMAND}] nothing to do: there is no target")
        return None
    _refuse_early(record, target, node)
    observed = observe_cluster(node.kubeconfig)
    drift_of = partial(drift_in, observed)
    plan = plan_following(observed.snapshot, record, target, node.name, asked.accepted, drift_of=drift_of)
    if plan.is_blocked or plan.unconfirmed:
        refuse_blocked(plan)
    states = {each.node: each.state for each in record.states}
    is_reported = node.name not in target.nodes or states.get(node.name) == "done"
    following = FollowingNode(
        name=node.name,
        is_control_plane=node.is_control_plane,
        target=target,
        snapshot=observed.snapshot,
        now=datetime.now(UTC),
        parts=parts_of(plan, node.name, is_reported=is_reported),
        is_reported=is_reported,
        is_last=all(state == "done" for name, state in states.items() if name != node.name),
        target_version=record.target_version,
    )
    return _Followed(plan, following)


def _refuse_early(record: ChangeRecord, target: ChangeTarget, node: ChangedNode) -> None:
    """Refuse to follow before the first node is done, or before the control planes that come first."""
    if target.state in ("pending", "canary"):
        raise ChangeInProgress(
            f"revision {target.revision} is not done on {target.canary} yet, where it begins",
            hint=f"wait for it; if it was cut short, garboard change resume on {target.canary}",
        )
    if not node.is_control_plane:
        return  # a worker may not see the other nodes
    before = target.nodes[: target.nodes.index(node.name)] if node.name in target.nodes else []
    left = {each.node: each.state for each in record.left}
    waiting = [name for name in before if name in left]
    if waiting:
        told = ", ".join(f"{name} is {left[name]}" for name in waiting)
        raise ChangeInProgress(
            f"{node.name} follows after {waiting[-1]}: {told}", hint=f"on {waiting[0]}: garboard change node --yes"
        )


def _shown(found: _Followed, node: ChangedNode) -> str:
    plan = prepared(following_plan(found.node), node, found.node.parts)
    own = replace(found.plan, parts=found.node.parts)
    return f"{plan_text(own)}\nSteps on {node.name}:\n\n{steps_text(plan, 'text')}"


def _confirm(asked: NodeRequest, found: _Followed, local: LocalNode) -> None:
    local.reporter.report(plan_text(replace(found.plan, parts=found.node.parts)).rstrip("\n"))
    if not asked.is_asked or not found.node.parts:
        return
    answer = local.reporter.ask(f"[{COMMAND}] Are you sure you want to proceed? [y/N]: ")
    if answer.strip().lower() not in ("y", "yes"):
        raise GarboardError("the change was not confirmed", hint="nothing was changed; --yes does not ask")


def _carry_out(asked: NodeRequest, found: _Followed, node: ChangedNode) -> None:
    following = found.node
    refuse_unsigned(following.parts, node.local.machine, node.local.reporter)
    plan = prepared(following_plan(following), node, following.parts)
    settings = node.settings(following.snapshot, asked.lease)
    try:
        with armed(node.local, following.target, node.name, following.snapshot, following.parts) as confirm_by:
            carry_out_on_node(plan, node, settings, replace(run_options(COMMAND), confirm_by=confirm_by))
    except (ChangeRolledBack, ChangeNeedsHelp):
        report = report_of(found.node.target, "failed", datetime.now(UTC))
        with suppress(GarboardError):  # the error itself says more than this
            node.cluster.patch(report.as_patch(node.name))
        raise
