"""Some of the points at which runs are killed in the lab, others every day; `make reliability` has them all."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime

import pytest

from benchmarks.reliability.live import Scene, init_scene, joining_scene
from tests.lab.conftest import RUN

pytestmark = [pytest.mark.lab, pytest.mark.timeout(1200)]
_STRIDE = 7  # no divisor of the number of points, so that all have their day


@pytest.mark.parametrize("make", [init_scene, joining_scene])
def test_run_that_was_killed_in_the_lab_is_undone_or_resumed(
    make: Callable[[str], AbstractContextManager[Scene]],
) -> None:
    today = datetime.now(UTC).timetuple().tm_yday
    with make(f"t{RUN}-kill") as scene:
        phases = scene.steps()
        points = scene.points(phases)
        undone, resumed = points[today * _STRIDE % len(points)], points[(today * _STRIDE + 3) % len(points)]
        outcomes = [
            scene.after_undo(undone, phases[undone.index]),
            scene.after_resume(resumed, phases[resumed.index]),
        ]
    assert [each for each in outcomes if each.problems] == []
