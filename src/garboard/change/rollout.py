"""A change as steps of the engine: on the node where it begins, and on those that follow.

The first node does its own part, then writes what nodes share: so no node reads a configuration that none has run
with. Only kube-proxy reads its ConfigMap itself, which therefore comes before the first of its pods. All of it is one
run, which is taken back as a whole.
"""

from collections.abc import Iterator
from dataclasses import field, replace
from datetime import datetime
from typing import Any

from garboard.change.configuration import read_configuration
from garboard.change.confirming import ConfirmTimes, armed_until
from garboard.change.engine_plan import node_steps, object_steps, without_actions
from garboard.change.node_work import DriftPolicy
from garboard.change.outcomes import ChangeBlocked
from garboard.change.plan import ChangePlan, PlannedObject
from garboard.change.record import documents_of, patch_sets_of
from garboard.change.snapshot import ClusterSnapshot
from garboard.engine import Plan, PutObject, Step
from garboard.manifests.objects import (
    KUBE_SYSTEM,
    NODES_GROUP,
    group,
    readable_by,
)
from garboard.manifests.uploaded import CONFIG_KEYS
from garboard.phases.change_record import ChangeRecord
from garboard.phases.control_plane_lease import ACQUIRED_WITHIN_S, UNIT, acquire_lease, release_lease
from garboard.phases.node.records import RECORD
from garboard.phases.node.records import ROLE as PATCHES_ROLE
from garboard.phases.node.revisions import (
    RecordedConfiguration,
    recorded_step,
    removal_steps,
    revision_steps,
    target_step,
)
from garboard.phases.revision import (
    ChangeTarget,
    NodeReport,
    ReportResult,
    Revision,
    moment,
)
from garboard.values import dataclass

REPORT_PHASE, LEASE_PHASE = "report", "lease"
_NODE_KEY = "node."
# The API server that renews the Lease may be the only one, and away for a while.
_LEASE_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeIntent:
    """Who wants a change and why, what was typed and accepted for it, and for how long it waits to be confirmed."""

    author: str = ""
    message: str = ""
    request: str = ""
    accepted: tuple[str, ...] = ()
    confirm: ConfirmTimes = ConfirmTimes()
    drift: DriftPolicy = "fail"
    drains: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """A change that is about to begin: its plan, what it was planned from, and what the cluster has recorded so far."""

    plan: ChangePlan
    snapshot: ClusterSnapshot
    here: str
    intent: ChangeIntent
    now: datetime
    record: ChangeRecord = field(default_factory=ChangeRecord)

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes that have something to do: this one first, then in the order of the plan."""
        found = [each.node for each in self.plan.nodes]
        return tuple(sorted(found, key=lambda each: each != self.here))

    @property
    def others(self) -> tuple[str, ...]:
        return tuple(each for each in self.nodes if each != self.here)

    @property
    def found(self) -> Revision | None:
        """The revision that records what is there: before the first change, and where somebody else has changed it."""
        first = "what was there before the first change"
        return self._configured().found_in(self.record, first=first, created=moment(self.now))

    @property
    def revision(self) -> Revision:
        """The revision that is begun."""
        found, record = self.found, self.record
        number = record.next_number + (found is not None)
        documents = documents_of(self.snapshot, self._new_documents())
        parent = found.number if found else record.current
        # Nodes that have not followed yet have what all had before; what was found is what is on none of them.
        base = record.settled if found is None or not record.is_rolled_out else found.number
        made = replace(self._configured(), documents=documents, patch_sets=self._new_patch_sets())
        intent = self.intent
        return made.revision(
            number,
            created=moment(self.now),
            parent=parent,
            base=base,
            author=intent.author,
            message=intent.message,
            request=intent.request,
            accepted=[*intent.accepted],
            drift=intent.drift,
            corrects=[*self.plan.corrects],
            drains=intent.drains,
        )

    def target(self, revision: Revision) -> ChangeTarget:
        """Return the target as it is while this node is at work."""
        return ChangeTarget(
            revision=revision.number,
            digest=revision.digest,
            state="canary",
            parent=revision.parent or 0,
            canary=self.here,
            nodes=[*self.nodes],
            author=self.intent.author,
            started_at=moment(self.now),
            changed_at=moment(self.now),
            **self._times,
        )

    @property
    def _times(self) -> dict[str, Any]:
        """What a target says of when it has to be confirmed; nothing if it has not."""
        within = self.intent.confirm
        if not within.confirm_s:
            return {}
        return {
            "confirm_within_seconds": within.confirm_s,
            "armed_until": moment(armed_until(self.now, len(self.nodes), within)),
            "revert_slot_seconds": within.slot_s,
        }

    def _configured(self) -> RecordedConfiguration:
        return RecordedConfiguration(
            kubernetes_version=version_of(self.snapshot),
            documents=documents_of(self.snapshot),
            patch_sets=patch_sets_of(self.snapshot),
        )

    def _new_documents(self) -> dict[str, str]:
        found = {}
        for each in self.plan.objects:
            if each.kind == "ConfigMap" and each.name in CONFIG_KEYS:
                found[each.name] = dict(each.data)[CONFIG_KEYS[each.name]]
        return found

    def _new_patch_sets(self) -> dict[str, str]:
        found = patch_sets_of(self.snapshot)
        for each in self.plan.objects:
            if each.kind == "Node":
                found[each.name] = dict(each.data)[next(iter(dict(each.data)))]
            elif each.name == RECORD:
                found |= {key.removeprefix(_NODE_KEY): text for key, text in each.data if key.startswith(_NODE_KEY)}
        return found


def version_of(snapshot: ClusterSnapshot) -> str:
    """Return the version of Kubernetes that the configuration names."""
    return read_configuration(snapshot).cluster.kubernetes_version


def refuse_blocked(plan: ChangePlan) -> None:
    """Refuse a plan that may not be carried out, or that nobody can carry out."""
    if plan.is_blocked:
        blocked = [each for each in plan.attributes if each.verdict == "blocked"]
        told = "; ".join(f"{each.label} [{each.code}]: {each.reason}" for each in blocked)
        routes = [each.route for each in blocked if each.route]
        raise ChangeBlocked(f"the change is blocked: {told}", hint=routes[0] if routes else "garboard change plan")
    if plan.unconfirmed:
        told = "; ".join(f"{each.label} [{each.code}]: {each.reason}" for each in plan.attributes if each.accepts)
        accept = ",".join(plan.unconfirmed)
        raise ChangeBlocked(f"the change has to be accepted: {told}", hint=f"nothing was changed; --accept {accept}")
    if missing := without_actions(plan):
        raise ChangeBlocked(
            f"this cannot be carried out: {', '.join(missing)} would have to change in more than images",
            hint="nothing was changed; change these objects with kubectl, and then the rest",
        )


def first_plan(rollout: Rollout, *, lease_within_s: float = ACQUIRED_WITHIN_S) -> Plan:
    """Return the steps of the node where a change begins."""
    revision = rollout.revision
    target = rollout.target(revision)
    steps = [
        *_begin(rollout, revision, target),
        *_own_parts(rollout),
        *report_steps(target, rollout.here, rollout.now),
        *_end(rollout, revision, target),
    ]
    return Plan(under_lease(steps, rollout.here, lease_within_s))


def _begin(rollout: Rollout, revision: Revision, target: ChangeTarget) -> Iterator[Step]:
    made = [each for each in (rollout.found, revision) if each is not None]
    yield from revision_steps(made, rollout.record.revisions)
    if any(each.name == RECORD for each in rollout.plan.objects):
        for each_object in readable_by(PATCHES_ROLE, KUBE_SYSTEM, RECORD, (group(NODES_GROUP),)):
            yield recorded_step(PutObject.of(each_object.content), "nodes read from it what they are patched with")
    cause = "one change at a time; whoever asks sees how far it is"
    yield target_step(target, cause, version=rollout.record.target_version)


def _own_parts(rollout: Rollout) -> Iterator[Step]:
    """Yield what is done on this node, and the objects, each where the plan has it."""
    stamp = rollout.now.strftime("%Y%m%dT%H%M%SZ")
    for part in rollout.plan.parts:
        if isinstance(part, PlannedObject):
            yield from object_steps(part)
        elif part.node == rollout.here:
            yield from node_steps(part, rollout.snapshot, stamp)


def _end(rollout: Rollout, revision: Revision, target: ChangeTarget) -> Iterator[Step]:
    state = "rolling" if rollout.others else "committed"
    cause = "the other nodes follow" if rollout.others else "no other node has anything to do"
    moved = target.moved(state, rollout.now)  # type: ignore[arg-type]
    yield target_step(moved, cause)
    kept = {revision.number, revision.base, *(each for each in (revision.parent,) if each is not None)}
    yield from removal_steps({*rollout.record.revisions, *kept}, keeps=kept)


def report_of(target: ChangeTarget, result: ReportResult, now: datetime) -> NodeReport:
    return NodeReport(revision=target.revision, digest=target.digest, result=result, at=moment(now))


def report_steps(target: ChangeTarget, node: str, now: datetime) -> Iterator[Step]:
    patch = report_of(target, "done", now).as_patch(node)
    yield Step(patch, "garboard change status asks for it", phase=REPORT_PHASE, node=node)


def under_lease(steps: list[Step], node: str, within_s: float) -> tuple[Step, ...]:
    wanted = acquire_lease(node, payload=f"{UNIT}:{node}", duration_s=_LEASE_S, timeout_s=within_s)
    before = Step(wanted, "one node at a time changes its control plane", phase=LEASE_PHASE)
    after = Step(release_lease(node), "the next node may follow", phase=LEASE_PHASE)
    return tuple(replace(each, node=node) for each in (before, *steps, after))
