"""The table of docs/reliability.md: what it says of whole passes, of samples, and of what was not measured."""

from typing import Any

from tools.harness.reliability_table import MARK, with_table

FORMER = f"""text
{MARK}

| what was killed | then | points | correct outcomes | measured |
| --- | --- | --- | --- | --- |
| init | undo | 88 | 88 | long ago |
"""


NOW = "2031-05-04, a machine, load average 3"


def rows(count: int, **more: Any) -> list[dict[str, Any]]:
    row = {"scenario": "init", "then": "undo", "problems": [], "day": "2031-05-04", "load": 3.2}
    return [{**row, **more} for _ in range(count)]


def lines(page: str) -> list[str]:
    return page.partition("| --- | --- | --- | --- | --- |\n")[2].splitlines()


def test_whole_pass_replaces_the_row_of_before() -> None:
    assert lines(with_table(FORMER, rows(88, of=88), "a machine")) == [f"| init | undo | 88 | 88 | {NOW} |"]
    assert lines(with_table(FORMER, rows(5), "a machine")) == [f"| init | undo | 5 | 5 | {NOW} |"]


def test_sample_says_of_how_many_points_and_leaves_the_whole_pass() -> None:
    found = with_table(FORMER, rows(7, of=88), "a machine")
    told = ["| init | undo | 88 | 88 | long ago |", f"| init, a sample | undo | 7 of 88 | 7 | {NOW} |"]
    assert lines(found) == told
    assert lines(with_table(found, [], "another")) == told


def test_whole_pass_takes_the_place_of_samples() -> None:
    sampled = with_table(FORMER, rows(7, of=88), "a machine")
    assert lines(with_table(sampled, rows(88, of=88), "a machine")) == [f"| init | undo | 88 | 88 | {NOW} |"]


def test_wrong_outcome_is_not_counted_as_correct() -> None:
    taken = rows(2, of=2) + rows(1, of=3, problems=["it is open"])
    assert lines(with_table(FORMER, taken, "a machine")) == [f"| init | undo | 3 | 2 | {NOW} |"]


def test_row_has_the_days_of_its_outcomes_and_how_busy_the_machine_was() -> None:
    taken = rows(1, of=2) + rows(1, of=2, day="2031-05-09", load=11.0)
    stamp = "2031-05-04 to 2031-05-09, a machine, load average 3 to 11"
    assert lines(with_table(FORMER, taken, "a machine")) == [f"| init | undo | 2 | 2 | {stamp} |"]
