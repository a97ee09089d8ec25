"""Undo: a plan that removes what a run made and restores what it changed, from the pre-images of its steps.

The order is not simply the reverse. The etcd member is removed while everything still runs, because a voting member
that has stopped still counts for the quorum. Then services and their pods stop, so that nothing writes into folders
that are about to be removed; then objects, through the API servers of other nodes; files last, because they contain the
credentials that all other steps need. Where a unit goes back, the API server of this node is among what it brings
back, so that objects that are asked for there come after it.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from enum import Enum, auto
from functools import partial

from garboard.engine.action import (
    MEMBER_ID,
    AcquireLease,
    Action,
    AddMember,
    ReleaseLease,
    RemoveMember,
    SaveSnapshot,
)
from garboard.engine.journal import RunRecord
from garboard.engine.plan import Note, Plan, Step
from garboard.engine.pre_image import (
    FileView,
    Observers,
    PreImage,
    digest_of,
    first_found,
)
from garboard.engine.precondition import expecting
from garboard.engine.show import step_title
from garboard.engine.traits import traits_of
from garboard.engine.undo_files import (
    BegunStep,
    changed_since,
    foreign_files,
    pairs_of,
    put_back,
    removed_temporaries,
    restore_files,
    written_by_services,
)
from garboard.engine.undo_objects import restore_objects
from garboard.engine.undo_running import (
    active,
    disable_timers,
    disable_unit_files,
    enable_timers,
    enable_unit_files,
    filled_folders,
    knows_pods,
    leads_through_this_node,
    remove_pods,
    start_services,
    stop_services,
    units_way_back,
)
from garboard.errors import GarboardError
from garboard.values import dataclass

MEMBERS, SERVICES, OBJECTS, FILES = "undo/members", "undo/services", "undo/objects", "undo/files"
Kept = Callable[[str], bytes]  # the content with a digest, of those that the run has kept
Part = tuple[str, Iterable[Action]]  # the phase of some actions, and the actions


class RestoringMoment(Enum):
    """When objects of the cluster are restored: while that what leads to it is there."""

    BEFORE_SERVICES = auto()
    BEFORE_PODS = auto()
    BEFORE_FILES = auto()
    LAST = auto()


class UndoRefused(GarboardError):
    """A run that cannot be undone."""

    default_class = "not-undoable"


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoLimits:
    """What an undo leaves alone: all objects of the cluster, those that nodes share, and `spared` files.

    Without any objects no Lease is taken either, so that no API server is asked.
    """

    keeps_objects: bool = False
    keeps_shared: bool = False
    spared: frozenset[str] = frozenset()


NO_LIMITS = UndoLimits()


def plan_undo(plan: Plan, record: RunRecord, observers: Observers, kept: Kept, limits: UndoLimits = NO_LIMITS) -> Plan:
    """Plan the undo of a run; what is already as it was before gets no step.

    After a step that removed what nobody can bring back, only what came later is undone, and a note says so.
    """
    _refuse(record)
    found = _plan_undo(plan, _since_loss(record), observers, kept, limits)
    return replace(found, notes=(*_losses(plan, record), *found.notes))


def _plan_undo(plan: Plan, record: RunRecord, observers: Observers, kept: Kept, limits: UndoLimits) -> Plan:
    done = _begun(plan, record)
    node = next((each.step.node for each in done), "")
    cause = f"run {record.header.run} is undone"
    loose = _outside_units(done)
    foreign = foreign_files(loose, observers.files) | limits.spared
    begun = ((each.step, each.before) for each in done)
    former_files = partial(put_back, kept=kept)
    back = tuple(units_way_back(plan.steps, begun, observers.files, former_files, limits.spared))
    units_back = {step.unit for step in back} - {""}
    # A unit that goes back starts its services again by its own steps, with the files of before.
    served = [each for each in done if each.step.unit not in units_back]
    restored = () if record.header.cluster == "made" else restore_objects(pairs_of(done), kept, limits.keeps_shared)
    objects = _objects_at(_moment_of_objects(record, done, has_units=bool(back)), tuple(restored))

    def steps(parts: Iterable[Part]) -> Iterator[Step]:
        chosen = (part for part in parts if part[0] in (FILES, SERVICES) or not limits.keeps_objects)
        return (Step(action, cause, phase, node) for phase, actions in chosen for action in actions)

    parts = (
        *_parts_before_files(done, served, observers, objects, has_units=bool(back)),
        *_parts_of_files(done, loose, observers, kept, foreign),
        *_parts_that_start(done, served, observers),
    )
    # What somebody writes from here on, also until an interrupted undo goes on, is as foreign as what is there now.
    judged = first_found(each.before for each in loose).keys() - written_by_services(pairs_of(loose))
    first = expecting(steps(parts), judged, lambda path: _digest(path, observers.files))
    # Last: what starts then finds the files of before.
    units = (replace(step, cause=cause, phase=f"undo/{step.unit}") for step in back)
    ends = steps([(OBJECTS, objects(RestoringMoment.LAST)), (MEMBERS, _release_leases(done) if back else ())])
    notes = (*_notes(done), *_pod_notes(pairs_of(done)), *_foreign_notes(foreign))
    return Plan((*first, *units, *ends), notes)


def _moment_of_objects(record: RunRecord, done: list[BegunStep], *, has_units: bool) -> RestoringMoment:
    """Say when the way to the cluster is there: through this node's API server, through a pod of it, or elsewhere."""
    if record.header.cluster == "local":
        return RestoringMoment.LAST if has_units else RestoringMoment.BEFORE_SERVICES
    return RestoringMoment.BEFORE_PODS if leads_through_this_node(pairs_of(done)) else RestoringMoment.BEFORE_FILES


def _objects_at(
    moment: RestoringMoment, restored: tuple[Action, ...]
) -> Callable[[RestoringMoment], tuple[Action, ...]]:
    """Return what gives the actions that restore objects if they are asked for at that time, else none."""
    return lambda asked: restored if asked is moment else ()


def _parts_before_files(
    done: list[BegunStep],
    served: list[BegunStep],
    observers: Observers,
    objects: Callable[[RestoringMoment], Iterable[Action]],
    *,
    has_units: bool,
) -> list[Part]:
    pairs = pairs_of(done)
    return [
        # First: a timer that fires meanwhile would meet an undo that is going on.
        (SERVICES, disable_timers(pairs, observers)),
        (MEMBERS, _leases_of_units(done) if has_units else ()),
        (MEMBERS, _forget_members(done)),
        (OBJECTS, objects(RestoringMoment.BEFORE_SERVICES)),
        (SERVICES, stop_services(pairs_of(served), observers)),
        (OBJECTS, objects(RestoringMoment.BEFORE_PODS)),
        (SERVICES, remove_pods(pairs, observers)),
        # Not before the API server of this node is gone: without its member it drops what the load balancer sends it.
        (MEMBERS, _release_leases(done) if not has_units else ()),
        (OBJECTS, objects(RestoringMoment.BEFORE_FILES)),
        # Not before the objects: the service may be what leads to the cluster.
        (SERVICES, disable_unit_files(pairs, observers)),
    ]


def _parts_of_files(
    done: list[BegunStep],
    loose: list[BegunStep],
    observers: Observers,
    kept: Kept,
    foreign: frozenset[str],
) -> list[Part]:
    """Return how files go back, and what killed writes have left."""
    pairs, files = pairs_of(loose), observers.files
    is_filling = any(active(pairs, observers))
    return [
        (FILES, restore_files(pairs, files, kept, foreign, is_filling=is_filling)),
        # What a killed write left in the middle of a unit; its files go back by the unit's own way.
        (FILES, removed_temporaries(pairs_of(each for each in done if each.step.unit), files)),
    ]


def _parts_that_start(done: list[BegunStep], served: list[BegunStep], observers: Observers) -> list[Part]:
    """Return what runs again on the files of before."""
    return [
        (SERVICES, start_services(pairs_of(served))),
        (SERVICES, enable_timers(pairs_of(done), observers)),
        (SERVICES, enable_unit_files(pairs_of(done), observers)),
    ]


def _outside_units(done: list[BegunStep]) -> list[BegunStep]:
    """Return the steps that go back each by itself; what may have no way back needs the snapshot saved before it."""
    may_last = any(each.step.lasts_once for each in done)
    loose = (each for each in done if not each.step.unit)
    return [each for each in loose if not (may_last and isinstance(each.step.action, SaveSnapshot))]


def edited_since(plan: Plan, record: RunRecord, files: FileView) -> frozenset[str]:
    """Return the files, also those of units, that somebody else has written since the run did.

    Of a run that is done this is also what somebody has removed; one that was cut short may have done that itself.
    """
    return changed_since(_begun(plan, record), files, is_done=record.is_unconfirmed)


def _digest(path: str, files: FileView) -> str:
    data = files.read(path)
    return "" if data is None else digest_of(data)


def added_members(plan: Plan, record: RunRecord) -> tuple[str, ...]:
    """Return the peer URLs of the members that the run may have added, and that its undo removes."""
    return tuple(_added(_begun(plan, _since_loss(record))))


def _begun(plan: Plan, record: RunRecord) -> list[BegunStep]:
    begun, finished = record.progress.begun, record.progress.finished
    attempts, latest = record.progress.attempts, record.progress.latest
    return [
        BegunStep(
            plan.steps[index], begun[index], finished.get(index, {}), attempts.get(index, ()), latest.get(index, {})
        )
        for index in sorted(begun)
    ]


def _refuse(record: RunRecord) -> None:
    if record.header.undoes:
        raise UndoRefused(f"run {record.header.run} is an undo itself", hint="garboard resume carries it to its end")
    if not record.is_undoable:
        raise UndoRefused(
            f"run {record.header.run} ({record.header.command}) has removed what nobody can bring back",
            hint="garboard resume carries it to its end",
        )


def _since_loss(record: RunRecord) -> RunRecord:
    """Return the run as if it had begun after its last loss; no unit has a loss in it."""
    if record.last_loss is None:
        return record
    begun = {index: before for index, before in record.progress.begun.items() if index > record.last_loss}
    return replace(record, progress=replace(record.progress, begun=begun))


def _losses(plan: Plan, record: RunRecord) -> Iterator[Note]:
    if record.last_loss is not None:
        step = plan.steps[record.last_loss]
        lost = traits_of(step.action).loses
        text = f"undo ends at the point of no return, {step_title(step)}: nobody can bring back {lost}"
        yield Note(f"{text}, and what the run did before that stays", is_warning=True, phase=step.phase)


def _forget_members(done: list[BegunStep]) -> Iterator[Action]:
    """Yield the removal of the members that the run added, under the Lease if the run acquired one."""
    added = _added(done)
    if added:
        yield from _leases(done)
    yield from (RemoveMember(peer_url=url, member_id=member_id) for url, member_id in added.items())


def _leases_of_units(done: list[BegunStep]) -> Iterator[Action]:
    """Yield how the Leases of the run are acquired for the way back of its units, for as long as on the way there.

    The API server may be what the way back has to bring back: if it does not answer, there is no Lease.
    """
    acquired = [each.step.action for each in done if isinstance(each.step.action, AcquireLease)]
    if not _added(done):
        longest = {(each.namespace, each.name): each for each in sorted(acquired, key=lambda each: each.duration_s)}
        yield from (replace(each, is_needed=False) for each in longest.values())


def _release_leases(done: list[BegunStep]) -> Iterator[Action]:
    """Yield the release of the Lease under which members were removed or units went back, or that was not released."""
    ended = [each for each in done if isinstance(each.step.action, ReleaseLease)]
    has_units = any(each.step.unit for each in done)
    if _added(done) or has_units or len(ended) < len(_leases(done)):
        for each in _leases(done):
            yield ReleaseLease(name=each.name, namespace=each.namespace, holder=each.holder)


def _added(done: list[BegunStep]) -> dict[str, str]:
    """Return the peer URLs of members that were not there before the run, with the id of each if it is recorded."""
    return {
        action.peer_url: each.outcomes.get(MEMBER_ID) or each.latest.get(MEMBER_ID, "")
        for each in done
        if isinstance(action := each.step.action, AddMember) and action.peer_url not in each.before.members
    }


def _leases(done: list[BegunStep]) -> list[AcquireLease]:
    """Return how each Lease was acquired; with its usual duration, also if it lasted longer for a while."""
    acquired = [each.step.action for each in done if isinstance(each.step.action, AcquireLease)]
    return list({(each.namespace, each.name): replace(each, duration_s=0.0) for each in acquired}.values())


def _notes(done: list[BegunStep]) -> Iterator[Note]:
    for each in done:
        if isinstance(each.step.action, AddMember) and each.step.action.peer_url in each.before.members:
            yield Note("the etcd member was there before the run, and stays", phase=MEMBERS)


def _pod_notes(done: list[tuple[Action, PreImage]]) -> Iterator[Note]:
    if filled_folders(done) and not knows_pods(done):
        text = "no container runtime said which pods there were before the run, so pods and their mounts stay"
        yield Note(text, phase=SERVICES)


def _foreign_notes(paths: Iterable[str]) -> Iterator[Note]:
    for path in sorted(paths):
        yield Note(f"{path} holds something else than the run wrote there: it stays as it is", phase=FILES)
