"""The way back: a plan that takes away what a run made and restores what it changed, from what its steps found.

The order is not simply the reverse. etcd forgets a member while everything still runs, because a member that voted is
missed by the quorum once it has stopped. Then services stop and their pods go, so that nobody writes into what is taken
away; then objects, through other nodes; files last, for they hold the credentials that all the others need.
"""

from collections.abc import Callable, Iterable, Iterator

from garboard.engine.action import (
    Action,
    AddMember,
    ControlService,
    EmptyFolder,
    EndTurn,
    RemoveMember,
    RemoveSandboxes,
    TakeTurn,
    Unmount,
)
from garboard.engine.before import Before, Eyes
from garboard.engine.plan import Note, Plan, Step
from garboard.engine.runs import RunRecord
from garboard.engine.undo_files import restore_files
from garboard.engine.undo_objects import restore_objects
from garboard.errors import GarboardError
from garboard.values import dataclass

_LOSSES = (EmptyFolder, Unmount, RemoveMember, RemoveSandboxes)
MEMBERS, SERVICES, OBJECTS, FILES = "undo/members", "undo/services", "undo/objects", "undo/files"


class UndoRefused(GarboardError):
    """A run whose work cannot be taken back."""

    default_class = "not-undoable"


@dataclass(frozen=True, slots=True)
class Done:
    """A step that has begun, and what it found."""

    step: Step
    before: Before


def is_undoable(plan: Plan) -> bool:
    """Say whether no step of the plan removes what nobody can bring back."""
    return not any(isinstance(step.action, _LOSSES) for step in plan.steps)


def plan_undo(
    plan: Plan, record: RunRecord, eyes: Eyes, kept: Callable[[str], bytes], *, keeps_objects: bool = False
) -> Plan:
    """Plan back to where the run began; what is as it was already gets no step."""
    _refuse(plan, record)
    done = _begun(plan, record)
    node = next((each.step.node for each in done), "")
    objects = () if record.header.cluster == "made" else tuple(restore_objects(_pairs(done), eyes, kept))
    is_local = record.header.cluster == "local"
    parts: list[tuple[str, Iterable[Action]]] = [
        (MEMBERS, _forget_members(done)),
        (OBJECTS, objects if is_local else ()),
        (SERVICES, _stop_services(done, eyes)),
        # Not before the API server of this node is gone: without its member it hangs up on whoever is led to it.
        (MEMBERS, _end_turns(done)),
        (OBJECTS, () if is_local else objects),
        (FILES, restore_files(_pairs(done), eyes.files, kept, is_filling=any(_active(done, eyes)))),
        (SERVICES, _start_services(done)),
    ]
    cause = f"run {record.header.run} is undone"
    chosen = [(phase, actions) for phase, actions in parts if phase in (FILES, SERVICES) or not keeps_objects]
    steps = tuple(Step(action, cause, phase, node) for phase, actions in chosen for action in actions)
    return Plan(steps, tuple(_notes(done)))


def added_members(plan: Plan, record: RunRecord) -> tuple[str, ...]:
    """Return the peer URLs of the members that the run may have added, and that its undoing removes."""
    return tuple(_added(_begun(plan, record)))


def _begun(plan: Plan, record: RunRecord) -> list[Done]:
    return [Done(plan.steps[index], before) for index, before in sorted(record.progress.begun.items())]


def _pairs(done: Iterable[Done]) -> list[tuple[Action, Before]]:
    return [(each.step.action, each.before) for each in done]


def _refuse(plan: Plan, record: RunRecord) -> None:
    if record.header.undoes:
        raise UndoRefused(f"run {record.header.run} is an undo itself", hint="garboard resume carries it to its end")
    if any(isinstance(plan.steps[index].action, _LOSSES) for index in record.progress.begun):
        raise UndoRefused(
            f"run {record.header.run} ({record.header.command}) has removed what nobody can bring back",
            hint="garboard resume carries it to its end",
        )


def _forget_members(done: list[Done]) -> Iterator[Action]:
    """Yield the removal of the members that the run added, within a turn where the run took turns."""
    urls = _added(done)
    if urls:
        yield from _turns(done)
    yield from (RemoveMember(peer_url=url) for url in urls)


def _end_turns(done: list[Done]) -> Iterator[Action]:
    """Yield the end of the turn in which members were removed, or of one that the run itself did not come to end."""
    ended = [each for each in done if isinstance(each.step.action, EndTurn)]
    if _added(done) or len(ended) < len(_turns(done)):
        for each in _turns(done):
            yield EndTurn(name=each.name, namespace=each.namespace, holder=each.holder)


def _added(done: list[Done]) -> list[str]:
    """Return the peer URLs of members that were not there before the run."""
    return [
        action.peer_url
        for each in done
        if isinstance(action := each.step.action, AddMember) and action.peer_url not in each.before.members
    ]


def _turns(done: list[Done]) -> list[TakeTurn]:
    return [each.step.action for each in done if isinstance(each.step.action, TakeTurn)]


def _started(done: list[Done]) -> list[tuple[ControlService, Before]]:
    """Return the first step about each service: what that one found is how things were."""
    found: dict[str, tuple[ControlService, Before]] = {}
    for each in done:
        if isinstance(action := each.step.action, ControlService):
            found.setdefault(action.service, (action, each.before))
    return list(found.values())


def _starts(done: list[Done]) -> Iterator[tuple[ControlService, Before]]:
    for each in done:
        if isinstance(action := each.step.action, ControlService) and action.verb != "stop":
            yield action, each.before


def _active(done: list[Done], eyes: Eyes) -> Iterator[str]:
    """Yield the services that the run started and that are at work now."""
    for service in dict.fromkeys(action.service for action, _ in _starts(done)):
        if eyes.services is not None and eyes.services.is_active(service):
            yield service


def _stop_services(done: list[Done], eyes: Eyes) -> Iterator[Action]:
    for service in _active(done, eyes):
        yield ControlService(service=service, verb="stop", is_needed=False)
    fills = [folder for _, before in _starts(done) for folder in before.filled]
    if fills:
        yield RemoveSandboxes()
        yield from (Unmount(path=each.path) for each in fills if eyes.files.has_folder(each.path))


def _start_services(done: list[Done]) -> Iterator[Action]:
    for action, before in _started(done):
        if action.service in before.active_services:
            yield ControlService(service=action.service, verb="start", is_needed=False)


def _notes(done: list[Done]) -> Iterator[Note]:
    for each in done:
        if isinstance(each.step.action, AddMember) and each.step.action.peer_url in each.before.members:
            yield Note("the etcd member was there before the run, and stays", phase=MEMBERS)
