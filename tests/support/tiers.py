"""Which of the collected tests run: those of a capability, and a share of those that have a day each."""

from collections import defaultdict
from pathlib import Path

import pytest

from tools.harness.capabilities import capability_of


def keep_capability(items: list[pytest.Item], only: str) -> list[pytest.Item]:
    """Leave the tests of one capability, and return the others."""
    others = [item for item in items if capability_of(item.nodeid) != only]
    items[:] = [item for item in items if capability_of(item.nodeid) == only]
    return others


def leave_to_verify(items: list[pytest.Item], seed: int) -> None:
    """Mark with `verify` what a test marked `sampled(n)` does not run today: all but one in n of its parameters.

    With `sampled(n, by="cluster")` it is one in n of the values of that parameter, the same for all tests of a file, so
    that the fixture is made for no other.
    """
    seen: defaultdict[tuple[Path, str], list[str]] = defaultdict(list)
    for item in items:
        marker = item.get_closest_marker("sampled")
        if marker is None:
            continue
        assert isinstance(item, pytest.Function)
        by = marker.kwargs.get("by", "")
        values = seen[item.path, by or item.originalname]
        value = str(item.callspec.params[by]) if by else item.nodeid
        if value not in values:
            values.append(value)
        if (values.index(value) + seed) % marker.args[0]:
            item.add_marker("verify")


def longest_first(items: list[pytest.Item]) -> None:
    """Begin with the files that may take longest: where processes share the work, none is left with them at the end."""
    longest: dict[Path, float] = {}
    for item in items:
        longest[item.path] = max(longest.get(item.path, 0), _timeout_s(item))
    items.sort(key=lambda item: -longest[item.path])


def _timeout_s(item: pytest.Item) -> float:
    marker = item.get_closest_marker("timeout")
    return float(marker.args[0]) if marker else 0
