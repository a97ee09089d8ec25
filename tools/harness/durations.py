"""How long the tests of a run took, written by pytest and read for the table at the end of `make test`."""

import json
import time
from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

DURATIONS = Path(__file__).parents[2] / "build" / "durations"


@dataclass(frozen=True)
class TierRun:
    """One run of pytest: the seconds that passed, and those of each test with its fixtures.

    With several processes the tests' seconds are more than those that passed.
    """

    tier: str
    ended_at: float
    wall_s: float
    tests: dict[str, float]

    def write(self, folder: Path = DURATIONS) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{self.tier}.json").write_text(json.dumps(asdict(self)))


def read_runs(folder: Path = DURATIONS) -> list[TierRun]:
    """Return the runs that were written, the earliest first."""
    found = [TierRun(**json.loads(path.read_text())) for path in folder.glob("*.json")]
    return sorted(found, key=lambda run: run.ended_at)


class DurationRecorder:
    """A plugin of pytest for the process that starts the others and hears of all tests."""

    def __init__(self, tier: str, folder: Path = DURATIONS) -> None:
        self._tier = tier
        self._folder = folder
        self._began_at = time.monotonic()
        self._tests: defaultdict[str, float] = defaultdict(float)

    def add(self, test: str, duration_s: float) -> None:
        self._tests[test] += duration_s

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.add(report.nodeid, report.duration)

    def pytest_sessionfinish(self) -> None:
        wall_s = time.monotonic() - self._began_at
        tests = {name: round(duration_s, 3) for name, duration_s in self._tests.items()}
        TierRun(self._tier, time.time(), wall_s, tests).write(self._folder)
