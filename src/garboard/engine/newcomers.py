"""What has come into folders that a run is to empty since it was interrupted: nothing of that is the run's to remove.

Services write into some of these folders until they are stopped. As long as that has not been done, what is new there
is theirs.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Protocol, TypeAlias

from garboard.engine.action import ControlService, EmptyFolder, RemoveSandboxes
from garboard.engine.journal import Progress, RunRecord
from garboard.engine.plan import Plan

Newcomers: TypeAlias = Mapping[int, tuple[str, ...]]  # by the index of a step that empties a folder, names in it


class ChangeView(Protocol):
    def changed_since(self, path: str, moment: datetime) -> tuple[str, ...]:
        """Return what is below a folder, as paths from there, and was made or changed since; folders do not count."""
        ...


def newcomers(plan: Plan, record: RunRecord, files: ChangeView) -> Newcomers:
    """Return what came into folders that are still to be emptied after the last line of the journal was written."""
    found: dict[int, tuple[str, ...]] = {}
    for index, step in enumerate(plan.steps):
        action = step.action
        if record.last_at is None or not isinstance(action, EmptyFolder) or index in record.progress.finished:
            continue
        if action.is_quiet or _is_everything_stopped(plan, index, record.progress):
            changed = files.changed_since(action.path, record.last_at)
            names = dict.fromkeys(path.partition("/")[0] for path in changed)
            if came := tuple(name for name in names if name not in action.keeps):
                found[index] = came
    return found


def sparing(plan: Plan, found: Newcomers) -> Plan:
    """Return the plan so that it leaves in its place what has come."""
    steps = list(plan.steps)
    for index, names in found.items():
        action = steps[index].action
        assert isinstance(action, EmptyFolder), "nothing else empties folders"
        steps[index] = replace(steps[index], action=replace(action, keeps=(*action.keeps, *names)))
    return replace(plan, steps=tuple(steps))


def _is_everything_stopped(plan: Plan, index: int, progress: Progress) -> bool:
    """Say whether every step before this one that stops a service, or ends pods, has ended."""
    return all(
        number in progress.finished
        for number, step in enumerate(plan.steps[:index])
        if isinstance(step.action, RemoveSandboxes)
        or (isinstance(step.action, ControlService) and step.action.verb == "stop")
    )
