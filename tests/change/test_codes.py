"""docs/change.md has every code of a verdict, with what it says."""

from tools import change_codes


def test_the_page_has_the_codes_that_the_program_has() -> None:
    assert change_codes.PAGE.read_text() == change_codes.page()
