"""The table at the end of `make test`."""

from pathlib import Path

from tools.budget import minutes_of, slowest, table
from tools.harness.durations import DurationRecorder, TierRun, read_runs

REAL = TierRun("real", 2.0, 600.0, {"tests/patches/test_a.py::a": 300.0, "tests/tunnel/test_b.py::b": 900.0})
LAB = TierRun("lab", 3.0, 540.0, {"tests/lab/test_bare.py::c": 540.0})


def cells(lines: list[str], head: str) -> list[str]:
    [line] = [line for line in lines if line.startswith(head)]
    return line.removeprefix(head).split()


def test_minutes_that_passed_are_shared_by_the_seconds_of_the_tests() -> None:
    assert minutes_of(REAL) == {"patches": 2.5, "tunnel": 7.5}


def test_table_adds_up_to_what_passed_since_the_beginning() -> None:
    lines = list(table([REAL, LAB], elapsed_s=1200.0))
    assert cells(lines, "real") == ["2.5", "7.5", "10.0"]
    assert cells(lines, "lab ") == ["9.0", "9.0"]
    assert cells(lines, "lint, types, set-up") == ["1.0"]
    assert cells(lines, "all ") == ["2.5", "9.0", "7.5", "20.0"]
    assert cells(lines, "budget")[-1] == "64.5"


def test_what_is_over_its_budget_is_named_and_nothing_else() -> None:
    warnings = [line for line in table([REAL, LAB], 1200.0) if line.startswith("warning")]
    assert [line.split()[1] for line in warnings] == ["lab"]


def test_slowest_tests_of_all_tiers_come_in_their_order() -> None:
    many = TierRun("fast", 1.0, 60.0, {f"tests/test_retry.py::{number}": float(number) for number in range(30)})
    lines = list(slowest([many, REAL]))
    assert len(lines) == 20
    assert lines[0].split() == ["900.0", "s", "real", "tests/tunnel/test_b.py::b"]
    assert lines[-1].split()[-1] == "tests/test_retry.py::12"


def test_runs_are_read_as_they_were_written_in_the_order_of_their_ends(tmp_path: Path) -> None:
    LAB.write(tmp_path)
    REAL.write(tmp_path)
    assert read_runs(tmp_path) == [REAL, LAB]


def test_recorder_adds_up_a_tests_own_time_and_that_of_its_fixtures(tmp_path: Path) -> None:
    recorder = DurationRecorder("real", tmp_path)
    for duration_s in (1.0, 2.0, 0.5):
        recorder.add("tests/lab/test_bare.py::c", duration_s)
    recorder.pytest_sessionfinish()
    [run] = read_runs(tmp_path)
    assert (run.tier, run.tests) == ("real", {"tests/lab/test_bare.py::c": 3.5})
