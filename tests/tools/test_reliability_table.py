"""The table of docs/reliability.md: what it says of whole passes, of samples, and of what was not measured."""

from typing import Any

from tools.harness.reliability_table import MARK, with_table

FORMER = f"""text
{MARK}

| what was killed | then | points | correct outcomes | measured |
| --- | --- | --- | --- | --- |
| init | undo | 88 | 88 | long ago |
"""


def rows(count: int, **more: Any) -> list[dict[str, Any]]:
    return [{"scenario": "init", "then": "undo", "problems": [], **more} for _ in range(count)]


def lines(page: str) -> list[str]:
    return page.partition("| --- | --- | --- | --- | --- |\n")[2].splitlines()


def test_whole_pass_replaces_the_row_of_before() -> None:
    assert lines(with_table(FORMER, rows(88, of=88), "now")) == ["| init | undo | 88 | 88 | now |"]
    assert lines(with_table(FORMER, rows(5), "now")) == ["| init | undo | 5 | 5 | now |"]


def test_sample_says_of_how_many_points_and_leaves_the_whole_pass() -> None:
    found = with_table(FORMER, rows(7, of=88), "now")
    told = ["| init | undo | 88 | 88 | long ago |", "| init, a sample | undo | 7 of 88 | 7 | now |"]
    assert lines(found) == told
    assert lines(with_table(found, [], "later")) == told


def test_wrong_outcome_is_not_counted_as_correct() -> None:
    taken = rows(2, of=2) + rows(1, of=3, problems=["it is open"])
    assert lines(with_table(FORMER, taken, "now")) == ["| init | undo | 3 | 2 | now |"]
