"""A process that carries out a command and kills itself at a chosen point of it."""

import json
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from garboard.engine import Journal, Step
from garboard.host.runs import RunFolder


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
        begin, end, append, replace = Journal.begin, Journal.end, RunFolder.append, Path.replace

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

        def watched_replace(path: Path, target: Path) -> Path:
            self.reach(f"{self._at}, rename {self._renames}")
            self._renames += 1
            return replace(path, target)

        for owner, name, watched in (
            (Journal, "begin", watched_begin),
            (Journal, "end", watched_end),
            (RunFolder, "append", watched_append),
            (Path, "replace", watched_replace),
        ):
            setattr(owner, name, watched)

    def _enter(self, name: str) -> None:
        self._at, self._renames = name, 0
        self.reach(name)
