"""A node that follows: what it lacks of the target, found out by the node itself, and the steps that bring it there."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from garboard.change.adopting import DriftOf
from garboard.change.correcting import correction_of
from garboard.change.drift_names import DriftNames
from garboard.change.drifting import ClusterDrift, drift_of_files
from garboard.change.engine_plan import KUBE_PROXY, node_steps
from garboard.change.node_work import PlanOptions
from garboard.change.plan import ChangePlan, NodeChange
from garboard.change.planning import plan_change
from garboard.change.record import as_recorded, state_of
from garboard.change.rollout import report_steps, under_lease
from garboard.change.snapshot import ClusterSnapshot
from garboard.engine import Plan, Step
from garboard.phases.change_record import ChangeRecord
from garboard.phases.control_plane_lease import ACQUIRED_WITHIN_S
from garboard.phases.node.revisions import target_step
from garboard.phases.revision import ChangeTarget, Revision
from garboard.values import dataclass


def revision_before(record: ChangeRecord, target: Revision, node: str) -> Revision:
    """Return the newest revision that a node has had before the target: what it has said, or what all nodes had."""
    report = record.reports.get(node)
    is_done = report is not None and report.result in ("done", "confirmed")
    if report is not None and is_done and target.base < report.revision < target.number:
        known = record.revisions.get(report.revision)
        if known is not None and known.digest == report.digest:
            return known
    return record.require(target.base)


def plan_following(
    snapshot: ClusterSnapshot,
    record: ChangeRecord,
    target: ChangeTarget,
    node: str,
    accepted: Sequence[str] = (),
    *,
    drift_of: DriftOf = drift_of_files,
) -> ChangePlan:
    """Return the plan of what a node lacks; `snapshot` has at least this node, with its files."""
    wanted = record.require(target.revision)
    if wanted.corrects:
        return _plan_correcting(as_recorded(snapshot, wanted), record, target, node, accepted, drift_of)
    former = as_recorded(snapshot, revision_before(record, wanted, node))
    codes = tuple(dict.fromkeys((*wanted.accepted, *accepted)))
    options = PlanOptions(accepted=codes, first=target.canary, drains=wanted.drains, drift=wanted.drift)
    return plan_change(former, state_of(wanted), options=options)


def _plan_correcting(
    snapshot: ClusterSnapshot,
    record: ChangeRecord,
    target: ChangeTarget,
    node: str,
    accepted: Sequence[str],
    drift_of: DriftOf,
) -> ChangePlan:
    """Return the plan of what a node has that goes; what is edited there later is another matter."""
    wanted, report = record.require(target.revision), record.reports.get(node)
    is_done = report is not None and report.says(target) in ("done", "confirmed")
    drift = ClusterDrift() if is_done or node not in target.nodes else drift_of(snapshot)
    codes = tuple(dict.fromkeys((*wanted.accepted, *accepted)))
    request = correction_of(drift, DriftNames.parse(wanted.corrects), node=node)
    return plan_change(
        snapshot, request, options=PlanOptions(accepted=codes, first=target.canary, drains=wanted.drains)
    )


def parts_of(plan: ChangePlan, node: str, *, is_reported: bool = False) -> tuple[NodeChange, ...]:
    """Return what a plan has for a node, without what it has reported already and no file shows: its new kube-proxy."""
    own = (each for each in plan.parts if isinstance(each, NodeChange) and each.node == node)
    return tuple(each for each in own if not (is_reported and any(step.phase == KUBE_PROXY for step in each.steps)))


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowingNode:
    """A node that follows: its part of the plan, and whether what the target says is done everywhere with it."""

    name: str
    is_control_plane: bool
    target: ChangeTarget
    snapshot: ClusterSnapshot
    now: datetime
    parts: tuple[NodeChange, ...] = ()
    is_reported: bool = False
    is_last: bool = False
    target_version: str = ""

    @property
    def steps(self) -> tuple[Step, ...]:
        stamp = self.now.strftime("%Y%m%dT%H%M%SZ")
        return tuple(step for part in self.parts for step in node_steps(part, self.snapshot, stamp))


def following_plan(node: FollowingNode, *, lease_within_s: float = ACQUIRED_WITHIN_S) -> Plan:
    """Return the steps of a node that follows; none if it has all that is asked for, and has said so."""
    steps = [*node.steps]
    if steps or not node.is_reported:
        steps += report_steps(node.target, node.name, node.now)
    if node.is_last and node.is_control_plane and node.target.state == "rolling":
        moved = node.target.moved("committed", node.now)
        steps.append(target_step(moved, "every node has what it says", version=node.target_version))
    if not node.is_control_plane or not node.steps:
        # A worker changes nothing that others share, and may not read the Lease; a report needs none.
        return Plan(tuple(replace(each, node=node.name) for each in steps))
    return Plan(under_lease(steps, node.name, lease_within_s))
