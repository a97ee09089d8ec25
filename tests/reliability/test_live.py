"""Some of the points at which runs are killed in the lab, others every day; `make reliability` has them all."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from tools.harness.lab import RUN
from tools.harness.lab_kills import LiveOutcome, Scene, init_scene, joining_scene

pytestmark = [pytest.mark.lab, pytest.mark.timeout(1200)]
_STRIDE = 7  # no divisor of the number of points, so that all have their day
Making = Callable[[str], AbstractContextManager[Scene]]
every_scene = pytest.mark.parametrize("make", [init_scene, joining_scene])


def killed_at_points(make: Making, seed: int, count: int) -> list[LiveOutcome]:
    """Undo after some points and resume after as many others, which the seed chooses."""
    with make(f"t{RUN}-kill") as scene:
        phases = scene.steps()
        points = scene.points(phases)
        outcomes = []
        for number in range(count):
            drawn = (seed + number) * _STRIDE
            undone, resumed = points[drawn % len(points)], points[(drawn + 3) % len(points)]
            outcomes.append(scene.after_undo(undone, phases[undone.index]))
            outcomes.append(scene.after_resume(resumed, phases[resumed.index]))
    return outcomes


@every_scene
def test_run_that_was_killed_in_the_lab_is_undone_or_resumed(make: Making, seed: int) -> None:
    assert [each for each in killed_at_points(make, seed, 1) if each.problems] == []


@pytest.mark.verify
@pytest.mark.timeout(3600)
@every_scene
def test_runs_killed_at_many_points_in_the_lab_are_undone_or_resumed(make: Making, seed: int) -> None:
    assert [each for each in killed_at_points(make, seed, 10) if each.problems] == []
