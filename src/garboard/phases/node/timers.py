"""Timers of a node: a command that runs later, whatever has become of garboard and of the cluster by then."""

from collections.abc import Iterator

from garboard.engine import ControlTimer, RemoveFile, Step, WriteFile
from garboard.manifests.timers import TimedCommand, timer_files, unit_paths


def plan_timer(timed: TimedCommand, cause: str) -> Iterator[Step]:
    """Plan the unit files of a timer, and that it is enabled; one of the same name is replaced."""
    for path, content in timer_files(timed).items():
        yield Step(WriteFile(path=path, content=content, mode=0o644), cause)
    yield Step(ControlTimer(timer=timed.name, verb="enable"), cause)


def plan_timer_removal(name: str, cause: str) -> Iterator[Step]:
    """Plan that a timer does not fire any more, and that its unit files go."""
    yield Step(ControlTimer(timer=name, verb="disable"), cause)
    for path in reversed(unit_paths(name)):
        yield Step(RemoveFile(path=path), cause)
    yield Step(ControlTimer(timer=name, verb="forget"), "the service manager has read the files that have gone")
