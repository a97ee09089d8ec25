"""Undo: a plan that removes what a run made and restores what it changed, from the pre-images of its steps.

The order is not simply the reverse. The etcd member is removed while everything still runs, because a voting member
that has stopped still counts for the quorum. Then services and their pods stop, so that nothing writes into folders
that are about to be removed; then objects, through the API servers of other nodes; files last, because they contain the
credentials that all other steps need. Where a unit goes back, the API server of this node is among what it brings
back, so that objects that are asked for there come after it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from functools import partial
from typing import TypeAlias

from garboard.engine.action import (
    MEMBER_ID,
    AcquireLease,
    Action,
    AddMember,
    ChangeOwner,
    ControlService,
    EmptyFolder,
    MakeFolder,
    ReleaseLease,
    RemoveFile,
    RemoveFolder,
    RemoveMember,
    SaveSnapshot,
    WriteFile,
)
from garboard.engine.journal import RunRecord
from garboard.engine.plan import Note, Plan, Step
from garboard.engine.pre_image import (
    FilePreImage,
    FileView,
    FolderPreImage,
    Observers,
    OwnerPreImage,
    PreImage,
    digest_of,
    first_found,
    temporaries,
)
from garboard.engine.precondition import expecting
from garboard.engine.show import step_title
from garboard.engine.traits import traits_of
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

_Kept: TypeAlias = Callable[[str], bytes]
MEMBERS, SERVICES, OBJECTS, FILES = "undo/members", "undo/services", "undo/objects", "undo/files"


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


@dataclass(frozen=True, slots=True)
class BegunStep:
    """A step that has begun, its pre-image, and its outcomes if it has ended."""

    step: Step
    before: PreImage
    outcomes: Mapping[str, str]
    facts: tuple[Mapping[str, str], ...] = ()  # what its attempts recorded
    latest: Mapping[str, str] = field(default_factory=dict)  # what the last one did


def plan_undo(plan: Plan, record: RunRecord, observers: Observers, kept: _Kept, limits: UndoLimits = NO_LIMITS) -> Plan:
    """Plan the undo of a run; what is already as it was before gets no step.

    After a step that removed what nobody can bring back, only what came later is undone, and a note says so.
    """
    _refuse(record)
    found = _plan_undo(plan, _since_loss(record), observers, kept, limits)
    return replace(found, notes=(*_losses(plan, record), *found.notes))


def _plan_undo(plan: Plan, record: RunRecord, observers: Observers, kept: _Kept, limits: UndoLimits) -> Plan:
    done = _begun(plan, record)
    node = next((each.step.node for each in done), "")
    objects = () if record.header.cluster == "made" else tuple(restore_objects(_pairs(done), kept, limits.keeps_shared))
    is_local = record.header.cluster == "local"
    is_through = not is_local and leads_through_this_node(_pairs(done))
    loose_steps = _outside_units(done)
    loose, foreign = _pairs(loose_steps), foreign_files(loose_steps, observers.files) | limits.spared
    begun = ((each.step, each.before) for each in done)
    restored = partial(_put_back, kept=kept)
    back = tuple(units_way_back(plan.steps, begun, observers.files, restored, limits.spared))
    # A unit that goes back starts its services again by its own steps, with the files of before.
    served = _pairs(each for each in done if each.step.unit not in {step.unit for step in back if step.unit})
    parts: list[tuple[str, Iterable[Action]]] = [
        # First: a timer that fires meanwhile would meet an undo that is going on.
        (SERVICES, disable_timers(_pairs(done), observers)),
        (MEMBERS, _leases_of_units(done) if back else ()),
        (MEMBERS, _forget_members(done)),
        (OBJECTS, objects if is_local and not back else ()),
        (SERVICES, stop_services(served, observers)),
        # A pod of this node may be what leads to the cluster.
        (OBJECTS, objects if is_through else ()),
        (SERVICES, remove_pods(_pairs(done), observers)),
        # Not before the API server of this node is gone: without its member it drops what the load balancer sends it.
        (MEMBERS, _release_leases(done) if not back else ()),
        (OBJECTS, () if is_local or is_through else objects),
        # Not before the objects: the service may be what leads to the cluster.
        (SERVICES, disable_unit_files(_pairs(done), observers)),
        (FILES, restore_files(loose, observers.files, kept, foreign, is_filling=any(active(loose, observers)))),
        # What a killed write left in the middle of a unit; its files go back by the unit's own way.
        (FILES, _removed_temporaries(_pairs(each for each in done if each.step.unit), observers.files)),
        (SERVICES, start_services(served)),
        (SERVICES, enable_timers(_pairs(done), observers)),
        (SERVICES, enable_unit_files(_pairs(done), observers)),
    ]
    cause = f"run {record.header.run} is undone"
    chosen = [(phase, actions) for phase, actions in parts if phase in (FILES, SERVICES) or not limits.keeps_objects]
    # What somebody writes from here on, also until an interrupted undo goes on, is as foreign as what is there now.
    judged = first_found(before for _, before in loose).keys() - _written_by_services(loose)
    found = (Step(action, cause, phase, node) for phase, actions in chosen for action in actions)
    steps = expecting(found, judged, lambda path: _digest(path, observers.files))
    # Last: what starts then finds the files of before.
    units = tuple(replace(step, cause=cause, phase=f"undo/{step.unit}") for step in back)
    late: list[tuple[str, Iterable[Action]]] = [
        (OBJECTS, objects if is_local and back else ()),
        (MEMBERS, _release_leases(done) if back else ()),
    ]
    ends = tuple(
        Step(action, cause, phase, node) for phase, actions in late if not limits.keeps_objects for action in actions
    )
    return Plan((*steps, *units, *ends), (*_notes(done), *_pod_notes(_pairs(done)), *_foreign_notes(foreign)))


def _outside_units(done: list[BegunStep]) -> list[BegunStep]:
    """Return the steps that go back each by itself; what may have no way back needs the snapshot saved before it."""
    may_last = any(each.step.lasts_once for each in done)
    loose = (each for each in done if not each.step.unit)
    return [each for each in loose if not (may_last and isinstance(each.step.action, SaveSnapshot))]


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


def _pairs(done: Iterable[BegunStep]) -> list[tuple[Action, PreImage]]:
    return [(each.step.action, each.before) for each in done]


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


def foreign_files(done: Iterable[BegunStep], files: FileView) -> frozenset[str]:
    """Return the files that hold neither what the run wrote nor what it found: somebody else has written them since.

    What a service makes is not known by its content, and is never among them.
    """
    steps = list(done)
    services = _written_by_services(_pairs(steps))
    paths = first_found(each.before for each in steps)
    return frozenset(path for path in paths if path not in services and _is_foreign(path, steps, files))


def edited_since(plan: Plan, record: RunRecord, files: FileView) -> frozenset[str]:
    """Return the files, also those of units, that somebody else has written since the run did.

    Of a run that is done this is also what somebody has removed; one that was cut short may have done that itself.
    """
    done = _begun(plan, record)
    left: dict[str, bool] = {}
    for each in done:
        is_there = not isinstance(each.step.action, RemoveFile)
        left.update(dict.fromkeys(traits_of(each.step.action).writes(each.step.action), is_there))
    removed = (path for path, is_there in left.items() if is_there and files.owner(path) is None)
    return foreign_files(done, files) | frozenset(removed if record.is_unconfirmed else ())


def _is_foreign(path: str, steps: list[BegunStep], files: FileView) -> bool:
    found = files.read(path)
    if found is None:
        return False
    digest = digest_of(found)
    for each in steps:
        is_former = any(file.path == path and file.sha256 == digest for file in each.before.files)
        if is_former or traits_of(each.step.action).wrote(each.step.action, path, found, each.facts):
            return False
    return True


def restore_files(
    done: Iterable[tuple[Action, PreImage]],
    files: FileView,
    kept: Callable[[str], bytes],
    foreign: frozenset[str] = frozenset(),
    *,
    is_filling: bool = False,
) -> Iterator[Action]:
    """Yield what restores files and folders, the last change first; what is as it was is left alone.

    Files that are `foreign` stay. With `is_filling`, services are still writing to their folders.
    """
    steps = list(done)
    for folder in filled_folders(steps).values():
        yield from _emptied(folder, files, is_filling=is_filling)
    yield from _removed_temporaries(steps, files)
    yield from _removed_new_files(steps, files)
    coming = _written_by_services(steps) if is_filling else frozenset[str]()
    for path, former in reversed(first_found(before for _, before in steps).items()):
        if former is None and path in coming:
            yield RemoveFile(path=path)
        elif path not in foreign:
            yield from _restored(path, former, files, kept)
    yield from _former_owners(steps, files)
    yield from _removed_folders(steps, files, foreign)


def _written_by_services(steps: list[tuple[Action, PreImage]]) -> frozenset[str]:
    return frozenset(path for action, _ in steps if isinstance(action, ControlService) for path in action.writes)


def _filled_by_services(steps: list[tuple[Action, PreImage]]) -> Iterator[str]:
    """Yield every file and folder that services of the run write to."""
    for action, _ in steps:
        if isinstance(action, ControlService):
            yield from (*action.fills, *action.writes)


def _restored(
    path: str, former: FilePreImage | None, files: FileView, kept: Callable[[str], bytes]
) -> Iterator[Action]:
    if former is None:
        if files.owner(path) is not None:
            yield RemoveFile(path=path)
        return
    content = kept(former.sha256)
    if files.read(path) != content:
        yield WriteFile(path=path, content=content, mode=former.mode, is_secret=True)
    yield from _former_owner(OwnerPreImage(path, former.uid, former.gid, former.mode), files, is_new=True)


def _put_back(path: str, former: FilePreImage | None, kept: Callable[[str], bytes]) -> Iterator[Action]:
    """Yield what restores a file that is away."""
    if former is not None:
        yield WriteFile(path=path, content=kept(former.sha256), mode=former.mode, is_secret=True)
        if (former.uid, former.gid) != (0, 0):
            yield ChangeOwner(path=path, uid=former.uid, gid=former.gid, mode=former.mode)


def _former_owner(former: OwnerPreImage, files: FileView, *, is_new: bool = False) -> Iterator[Action]:
    found = files.owner(former.path)
    # A file that has to be written again belongs to us at first.
    found = (0, 0, former.mode) if found is None and is_new else found
    if found is not None and found != (former.uid, former.gid, former.mode):
        yield ChangeOwner(path=former.path, uid=former.uid, gid=former.gid, mode=former.mode)


def _former_owners(steps: list[tuple[Action, PreImage]], files: FileView) -> Iterator[Action]:
    found: dict[str, OwnerPreImage] = {}
    made = {path for _, before in steps for path in (*before.absent_files, *before.absent_folders)}
    for action, before in steps:
        for each in before.owners:
            found.setdefault(each.path, each)
        if isinstance(action, RemoveFolder):
            yield from (MakeFolder(path=each.path, mode=each.mode) for each in before.owners if each.path not in made)
    for former in found.values():
        if former.path not in made:
            yield from _former_owner(former, files)


def _removed_temporaries(steps: list[tuple[Action, PreImage]], files: FileView) -> Iterator[Action]:
    for action, before in steps:
        for path in traits_of(action).writes(action):
            for each in temporaries(path, files):
                if each not in before.temporaries:
                    yield RemoveFile(path=each)


def _removed_new_files(steps: list[tuple[Action, PreImage]], files: FileView) -> Iterator[Action]:
    for path in dict.fromkeys(path for _, before in steps for path in before.new_files):
        if files.owner(path) is not None:
            yield RemoveFile(path=path)


def _removed_folders(
    steps: list[tuple[Action, PreImage]], files: FileView, foreign: frozenset[str]
) -> Iterator[Action]:
    found: dict[str, bool] = {}
    for action, before in steps:
        for path in before.absent_folders:
            found[path] = found.get(path, False) or (isinstance(action, MakeFolder) and path == action.path)
    for path, is_ours in reversed(found.items()):
        if files.owner(path) is None:
            continue
        # A folder that a step of its own made was made to be filled, and whatever is in it came after that.
        if is_ours and files.entries(path):
            inside = (each.removeprefix(f"{path}/") for each in sorted(foreign) if each.startswith(f"{path}/"))
            keeps = tuple(dict.fromkeys(each.split("/")[0] for each in inside))
            is_quiet = not any(f"{each}/".startswith(f"{path}/") for each in _filled_by_services(steps))
            yield EmptyFolder(path=files.resolve(path), keeps=keeps, is_resolved=True, is_quiet=is_quiet)
        yield RemoveFolder(path=path)


def _emptied(folder: FolderPreImage, files: FileView, *, is_filling: bool) -> Iterator[Action]:
    """Yield the removal of what was added to a folder since, and is added until its service has stopped."""
    if folder.names is None:
        yield from _removed_tree(folder.path, files)
    elif files.has_folder(folder.path) and (is_filling or set(files.entries(folder.path)) - set(folder.names)):
        yield EmptyFolder(path=files.resolve(folder.path), keeps=folder.names, is_resolved=True)


def _removed_tree(path: str, files: FileView) -> Iterator[Action]:
    if files.has_folder(path):
        yield EmptyFolder(path=files.resolve(path), is_resolved=True)
        yield RemoveFolder(path=path)
    elif files.owner(path) is not None or path.rpartition("/")[2] in files.entries(path.rpartition("/")[0]):
        yield RemoveFile(path=path)
