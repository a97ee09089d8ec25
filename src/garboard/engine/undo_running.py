"""Undo of what runs: services, timers, and units of steps, as the replacement of static pods is one.

What the run started stops, what it stopped starts again, and former pods stay. A service that ran before the run and
had pods is a node at work. Its pods, their volumes, the folders that it writes to and its Node are none of the run's
making, whatever the run did to the service itself.

A unit goes back by its own steps, in their own order, with the files of before in place of the new ones. So what has to
happen between two files, and the gate at the end, is the same on the way back. The gates of a unit, and all of its
actions but those on files, look at files that are there or away; they are right whatever the unit came to. A file
that may have no way back (`lasts_once`) is judged when its turn comes: what is asked then may change until that moment.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from garboard.engine.action import (
    Action,
    ControlLink,
    ControlService,
    ControlTimer,
    ControlUnitFile,
    NewerContent,
    RemoveFile,
    RemoveSandboxes,
    Unmount,
    WriteFile,
)
from garboard.engine.plan import Step
from garboard.engine.pre_image import (
    FilePreImage,
    FileView,
    FolderPreImage,
    Observers,
    PreImage,
    digest_of,
    first_found,
)

BegunActions: TypeAlias = Sequence[tuple[Action, PreImage]]  # what has begun, in its order, with the pre-images


def stop_services(done: BegunActions, observers: Observers) -> Iterator[Action]:
    """Yield what stops the services that the run started."""
    for service in active(done, observers):
        yield ControlService(service=service, verb="stop", is_needed=False)


def remove_pods(done: BegunActions, observers: Observers) -> Iterator[Action]:
    """Yield what removes the pods that the services of the run made, once they have stopped."""
    folders = filled_folders(done).values()
    if folders and knows_pods(done):
        sandboxes = tuple(dict.fromkeys(each for _, before in _starts(done) for each in before.sandboxes))
        yield RemoveSandboxes(keeps=sandboxes)
        # Volumes of a pod that stays are mounted there.
        if not sandboxes:
            found = (each.path for each in folders if observers.files.has_folder(each.path))
            former = next((before.mounts for action, before in _starts(done) if action.fills), ())
            yield from (_unmounted(observers.files.resolve(path), former) for path in found)


def _unmounted(path: str, former: tuple[str, ...]) -> Unmount:
    return Unmount(path=path, keeps=tuple(each for each in former if each.startswith(f"{path}/")))


def knows_pods(done: BegunActions) -> bool:
    """Say whether the container runtime told which pods there were before the run: others could be removed else."""
    first = next((before for action, before in _starts(done) if action.fills), None)
    return first is not None and (bool(first.sandboxes) or first.is_without_pods)


def disable_timers(done: BegunActions, observers: Observers) -> Iterator[ControlTimer]:
    """Yield what disables the timers that the run enabled, while their files are there."""
    for timer, before in _first_about_timers(done).items():
        is_enabled = observers.timers is not None and observers.timers.is_timer_enabled(timer)
        if is_enabled and timer not in before.enabled_timers:
            yield ControlTimer(timer=timer, verb="disable")


def enable_timers(done: BegunActions, observers: Observers) -> Iterator[Action]:
    """Yield what has the files of timers read again, once they are as before: they are enabled, or forgotten."""
    for timer, before in _first_about_timers(done).items():
        if timer in before.enabled_timers:
            yield ControlTimer(timer=timer, verb="enable")
    for action in disable_timers(done, observers):
        yield replace(action, verb="forget")


def _first_about_timers(done: BegunActions) -> dict[str, PreImage]:
    found: dict[str, PreImage] = {}
    for action, before in done:
        if isinstance(action, ControlTimer):
            found.setdefault(action.timer, before)
    return found


def leads_through_this_node(done: BegunActions) -> bool:
    """Say whether the node reaches the cluster through a program of its own, at an address that the run added."""
    return any(isinstance(action, ControlLink) for action, _ in done)


def disable_unit_files(done: BegunActions, observers: Observers) -> Iterator[Action]:
    """Yield what stops and disables the services whose unit files the run enabled, and takes its addresses away."""
    for service in _disabled(done, observers):
        yield ControlUnitFile(service=service, verb="disable")
    for action, before in _first_about_links(done).values():
        has_address = observers.links is not None and observers.links.has_address(action.address)
        if has_address and action.address not in before.addresses:
            yield replace(action, verb="remove")


def enable_unit_files(done: BegunActions, observers: Observers) -> Iterator[Action]:
    """Yield what has unit files read again, once they are as before: they are enabled, or forgotten."""
    for service, before in _first_about_unit_files(done).items():
        if service in before.enabled_services:
            yield ControlUnitFile(service=service, verb="enable")
    for service in _disabled(done, observers):
        yield ControlUnitFile(service=service, verb="forget")


def _disabled(done: BegunActions, observers: Observers) -> Iterator[str]:
    """Yield the services that the run enabled; one may be disabled already, and not have stopped yet."""
    for service, before in _first_about_unit_files(done).items():
        is_enabled = observers.unit_files is not None and observers.unit_files.is_service_enabled(service)
        is_active = observers.services is not None and observers.services.is_active(service)
        if (is_enabled or is_active) and service not in before.enabled_services:
            yield service


def _first_about_unit_files(done: BegunActions) -> dict[str, PreImage]:
    found: dict[str, PreImage] = {}
    for action, before in done:
        if isinstance(action, ControlUnitFile):
            found.setdefault(action.service, before)
    return found


def _first_about_links(done: BegunActions) -> dict[str, tuple[ControlLink, PreImage]]:
    found: dict[str, tuple[ControlLink, PreImage]] = {}
    for action, before in done:
        if isinstance(action, ControlLink):
            found.setdefault(action.address, (action, before))
    return found


def start_services(done: BegunActions) -> Iterator[Action]:
    """Yield what starts the services that ran before."""
    for service, before in _first(done).items():
        if service in before.active_services:
            yield ControlService(service=service, verb="start", is_needed=False)


def active(done: BegunActions, observers: Observers) -> Iterator[str]:
    """Yield the services that the run started and that run now."""
    for service in dict.fromkeys(action.service for action, _ in _starts(done)):
        if observers.services is not None and observers.services.is_active(service):
            yield service


def filled_folders(done: BegunActions) -> dict[str, FolderPreImage]:
    """Return the folders that services have written to since the run started them, as they were before."""
    former = with_former_pods(done)
    found: dict[str, FolderPreImage] = {}
    for action, before in _starts(done):
        if action.service not in former:
            for folder in before.filled:
                found.setdefault(folder.path, folder)
    return found


def with_former_pods(done: BegunActions) -> frozenset[str]:
    """Return the services that ran before the run, unless the container runtime said then that there were no pods."""
    first = _first(done)
    found: dict[str, bool] = {}
    for action, before in _starts(done):
        if action.fills:
            was_active = action.service in first[action.service].active_services
            found.setdefault(action.service, was_active and not before.is_without_pods)
    return frozenset(service for service, had_pods in found.items() if had_pods)


def _first(done: BegunActions) -> dict[str, PreImage]:
    """Return the pre-image of the first step about each service: its state before the run."""
    found: dict[str, PreImage] = {}
    for action, before in done:
        if isinstance(action, ControlService):
            found.setdefault(action.service, before)
    return found


def _starts(done: BegunActions) -> Iterator[tuple[ControlService, PreImage]]:
    for action, before in done:
        if isinstance(action, ControlService) and action.verb != "stop":
            yield action, before


def units_way_back(
    steps: Sequence[Step],
    begun: Iterable[tuple[Step, PreImage]],
    files: FileView,
    restored: Callable[[str, FilePreImage | None], Iterable[Action]],
    spared: frozenset[str] = frozenset(),
) -> Iterator[Step]:
    """Yield the way back of every unit that has begun, the last first; files that are `spared` are left alone.

    A unit whose files are as before has none, unless all that it does is restarting what reads them.

    `restored` returns what restores a file that is away; one that was not there before is left away.
    """
    found = list(begun)
    for unit in reversed(dict.fromkeys(step.unit for step, _ in found if step.unit)):
        of_files = first_found(before for step, before in found if step.unit == unit)
        former = {path: each for path, each in of_files.items() if path not in spared}
        of_unit = [step for step in steps if step.unit == unit]
        if any(_has_changed(path, each, files) for path, each in former.items()) or _only_restarts(
            of_unit, former, files
        ):
            yield from _way_back(of_unit, former, restored)


def _way_back(
    steps: Iterable[Step],
    former: dict[str, FilePreImage | None],
    restored: Callable[[str, FilePreImage | None], Iterable[Action]],
) -> Iterator[Step]:
    for step in steps:
        action = step.action
        if isinstance(action, RemoveFile | WriteFile) and action.path not in former:
            continue  # the unit did not come that far
        if isinstance(action, WriteFile):
            put_back = restored(action.path, former[action.path])
            yield from (_again(step, _unless_lasting(step, action, each)) for each in put_back)
        else:
            yield _again(step, action)


def _unless_lasting(step: Step, written: WriteFile, restoring: Action) -> Action:
    """Return what restores a file, or leaves what the step wrote there if that has no way back by then."""
    if step.lasts_once is None or not isinstance(restoring, WriteFile):
        return restoring
    return replace(restoring, unless=NewerContent(step.lasts_once, written.content))


def _again(step: Step, action: Action) -> Step:
    return replace(step, action=action, preconditions=(), lasts_once=None)


def _only_restarts(steps: Iterable[Step], former: Mapping[str, FilePreImage | None], files: FileView) -> bool:
    """Whether the unit has begun to take files away, and all that it writes is what was there before."""
    written = [step.action for step in steps if isinstance(step.action, WriteFile)]
    is_begun = any(each.path in former for each in written)
    return is_begun and all(_former_digest(each.path, former, files) == digest_of(each.content) for each in written)


def _former_digest(path: str, former: Mapping[str, FilePreImage | None], files: FileView) -> str:
    if path in former:
        found = former[path]
        return found.sha256 if found else ""
    data = files.read(path)  # the unit did not come that far
    return "" if data is None else digest_of(data)


def _has_changed(path: str, former: FilePreImage | None, files: FileView) -> bool:
    data = files.read(path)
    return data is not None if former is None else data is None or digest_of(data) != former.sha256
