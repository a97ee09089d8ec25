"""Runs that kill themselves at a chosen point: in this process on a scratch machine, or in a node of a lab."""

import json
import os
import signal
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from garboard.engine import Journal, Step
from garboard.host.runs import RunFolder

_KILL_IN_NODE = """
import os, signal
from garboard.engine.journal import Journal
recorded = Journal.{moment}
def killing(self, index, *more):
    if "{moment}" == "end" and index == {index}: os.kill(os.getpid(), signal.SIGKILL)
    recorded(self, index, *more)
    if index == {index}: os.kill(os.getpid(), signal.SIGKILL)
Journal.{moment} = killing
"""


@dataclass
class Points:
    """Every point that a command passes, by name; at `deadly` the process ends as by a SIGKILL from outside.

    Of each step: before its line is written, while it is written (torn), once it has begun, at every rename that puts a
    file in its place, when it is done, and when that has been written down.
    """

    deadly: str = ""
    passed: list[str] = field(default_factory=list)
    _at: str = ""
    _renames: int = 0

    def reach(self, name: str) -> None:
        self.passed.append(name)
        if name == self.deadly:
            os.kill(os.getpid(), signal.SIGKILL)

    def watch(self) -> None:
        """Stand at the journal, and at every rename."""
        begin, end, append = Journal.begin, Journal.end, RunFolder.append
        replace, link = os.replace, os.link

        def watched_begin(journal: Journal, index: int, step: Step) -> None:
            self._enter(f"{index} before")
            begin(journal, index, step)
            self._enter(f"{index} begun")

        def watched_end(journal: Journal, index: int, step: Step, outcomes: Mapping[str, str]) -> None:
            self._enter(f"{index} done")
            end(journal, index, step, outcomes)
            self._enter(f"{index} ended")

        def watched_append(folder: RunFolder, data: bytes, *, is_lasting: bool) -> None:
            entry = json.loads(data)
            torn = f"{entry.get('index', 'run')} torn {entry['type']}"
            if torn == self.deadly:
                append(folder, data[: len(data) // 2], is_lasting=True)
            self.reach(torn)
            append(folder, data, is_lasting=is_lasting)

        def watched_replace(source: str, target: str, **folders: int) -> None:
            self.reach(f"{self._at}, rename {self._renames}")
            self._renames += 1
            replace(source, target, **folders)

        def watched_link(source: str, target: str, **ways: Any) -> None:
            self.reach(f"{self._at}, rename {self._renames}")
            self._renames += 1
            link(source, target, **ways)
            self.reach(f"{self._at}, rename {self._renames - 1} with both names")

        for owner, name, watched in (
            (Journal, "begin", watched_begin),
            (Journal, "end", watched_end),
            (RunFolder, "append", watched_append),
            (os, "replace", watched_replace),
            (os, "link", watched_link),
        ):
            setattr(owner, name, watched)

    def _enter(self, name: str) -> None:
        self._at, self._renames = name, 0
        self.reach(name)


@dataclass(frozen=True)
class KillPoint:
    """Where a run is killed: when the begin of a step is on disk, or when it is done and its end is not yet."""

    moment: Literal["begin", "end"]
    index: int

    def of(self, garboard: tuple[str, ...]) -> tuple[str, ...]:
        """Return the command that runs garboard, whose last word is Python code, with this end."""
        return (*garboard[:-1], _KILL_IN_NODE.format(moment=self.moment, index=self.index) + garboard[-1])


def both_points(steps: Iterable[int]) -> list[KillPoint]:
    """Return the two points of each step in its order: its begin is on disk, and it is done."""
    return [point for index in steps for point in (KillPoint("begin", index), KillPoint("end", index))]


def chosen_points(
    points: Sequence[KillPoint], every: int, first: int | None = None, day: int | None = None
) -> Sequence[KillPoint]:
    """Return every n-th point; where no first one is given, other points each day, so that all have theirs."""
    today = datetime.now(UTC).toordinal() if day is None else day
    return points[today % every if first is None else first :: every]
