"""The nearest real name for a name that does not exist."""

from collections.abc import Iterable


def suggest(word: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate a person most likely meant, or nothing if none is near.

    Near is a third of the letters changed, added, dropped or swapped. Case, dashes and dots do not count as
    differences, so `enableAdmissionPlugins` finds `enable-admission-plugins`. Ties go to the first in byte order.
    """
    wanted = _letters(word)
    allowed = max(1, len(wanted) // 3)
    best: tuple[int, int, str] | None = None
    for candidate in sorted(set(candidates) - {word}):
        offered = _letters(candidate)
        limit = allowed if best is None else min(allowed, best[0])
        distance = _distance(wanted, offered, limit)
        if distance <= limit:
            ranked = (distance, abs(len(candidate) - len(word)), candidate)
            best = ranked if best is None else min(best, ranked)
    return None if best is None else best[2]


def _letters(word: str) -> str:
    return "".join(letter for letter in word.lower() if letter not in "-_. ")


def _distance(wanted: str, offered: str, limit: int) -> int:
    """Count edits (insert, delete, replace, swap of neighbours); above `limit` any larger number may come back."""
    if abs(len(wanted) - len(offered)) > limit:
        return limit + 1
    before: list[int] = []
    row = list(range(len(offered) + 1))
    for i, letter in enumerate(wanted, 1):
        before, last, row = row, before, [i]
        for j, other in enumerate(offered, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != other))
            if i > 1 and j > 1 and letter == offered[j - 2] and wanted[i - 2] == other:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
        if min(row) > limit:
            return limit + 1
    return row[-1]
