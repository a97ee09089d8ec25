"""What can still be said of a run whose journal is damaged."""

import pytest

from garboard.engine import Observers, Plan, Step, WriteFile, salvage
from tests.support.engine.actions import MemoryFiles
from tests.support.engine.runs import begin

PLAN = Plan(
    tuple(Step(WriteFile(path=f"/etc/{name}", content=b"", mode=0o600), "because", f"phase/{name}") for name in "abc")
)


def lines() -> list[bytes]:
    """The journal of a run that has finished its first step, and begun the second of three."""
    run, journal = begin(PLAN, Observers(files=MemoryFiles()))
    journal.begin(0, PLAN.steps[0])
    journal.end(0, PLAN.steps[0], {})
    journal.begin(1, PLAN.steps[1])
    return run.lines().splitlines(keepends=True)


A, B, C = (f"phase/{name}: write-file /etc/{name}" for name in "abc")


@pytest.mark.parametrize(
    ("damaged", "damage", "unknown"),
    [
        pytest.param(None, b"", (B,), id="no line: only what was kept is lost"),
        pytest.param(2, b"\0\0\n", (A, B, C), id="the end of the first step"),
        pytest.param(3, b"\0\0\n", (B, C), id="the begin of the second step"),
        pytest.param(3, b'{"type":"begin"}\n', (B, C), id="a begin without its number"),
        pytest.param(3, b"7\n", (B, C), id="a line that is no entry"),
    ],
)
def test_steps_of_which_no_line_tells_whether_they_were_done_are_named(
    damaged: int | None, damage: bytes, unknown: tuple[str, ...]
) -> None:
    data = [damage if index == damaged else line for index, line in enumerate(lines())]
    found = salvage(b"".join(data))
    assert (found.command, found.steps, found.unknown) == ("init", 3, unknown)
    assert found.damaged_lines == (damaged is not None)


def test_nothing_is_known_without_the_plan() -> None:
    found = salvage(b"".join(lines()[1:]))
    assert (found.command, found.unknown) == ("", ())
