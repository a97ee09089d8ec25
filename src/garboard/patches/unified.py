"""Differences between two texts as people read them: a unified diff, and how much of it there is."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

MAX_BAR = 40
CONTEXT = 3


@dataclass(frozen=True, slots=True)
class TextDiff:
    """What turns one text into another; `before` and `after` are the names that the diff shows."""

    before: str
    after: str
    lines: tuple[str, ...]

    @classmethod
    def of(cls, before: str, after: str, names: tuple[str, str], *, context: int = CONTEXT) -> "TextDiff":
        lines = difflib.unified_diff(
            before.splitlines(keepends=True), after.splitlines(keepends=True), *names, n=context
        )
        return cls(*names, tuple(lines))

    @property
    def added(self) -> int:
        return sum(line.startswith("+") for line in self.lines[2:])

    @property
    def removed(self) -> int:
        return sum(line.startswith("-") for line in self.lines[2:])


def diff_stat(diffs: Sequence[TextDiff]) -> str:
    """Return one line for each diff that is not empty, with its added and removed lines, and their sum."""
    changed = [each for each in diffs if each.lines]
    width = max((len(each.before) for each in changed), default=0)
    most = max((each.added + each.removed for each in changed), default=0)
    rows = [f" {each.before:{width}} | {each.added + each.removed:4} {_bar(each, most)}\n" for each in changed]
    added, removed = sum(each.added for each in changed), sum(each.removed for each in changed)
    documents = "1 document" if len(changed) == 1 else f"{len(changed)} documents"
    lines = "1 line" if added == 1 else f"{added} lines"
    return "".join(rows) + f" {documents} changed, {lines} added, {removed} removed\n"


def _bar(diff: TextDiff, most: int) -> str:
    """Return plus and minus signs, fewer than lines if one of the diffs has more than fit."""
    share = min(1.0, MAX_BAR / most)
    return "+" * ceil(diff.added * share) + "-" * ceil(diff.removed * share)
