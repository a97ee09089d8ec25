"""Differences between texts: lines, context and the summary."""

from garboard.patches.unified import MAX_BAR, TextDiff, diff_stat


def diff(before: str, after: str, name: str = "a", context: int = 3) -> TextDiff:
    return TextDiff.of(before, after, (name, f"{name} (patched)"), context=context)


def test_lines_are_counted_without_the_header() -> None:
    found = diff("-- x\ny\n", "++ x\ny\nz\n")
    assert (found.added, found.removed) == (2, 1)


def test_equal_texts_have_no_lines_and_no_row() -> None:
    assert diff("x\n", "x\n").lines == ()
    assert diff_stat([diff("x\n", "y\n")]).endswith(" 1 document changed, 1 line added, 1 removed\n")
    assert diff_stat([diff("x\n", "x\n")]) == " 0 documents changed, 0 lines added, 0 removed\n"


def test_context_can_be_left_out() -> None:
    text = "".join(f"{number}\n" for number in range(20))
    assert len(diff(text, text.replace("10\n", "ten\n"), context=0).lines) == 5
    assert len(diff(text, text.replace("10\n", "ten\n")).lines) == 11


def test_bar_of_a_long_diff_fits_and_shows_each_kind() -> None:
    long = diff("x\n", "".join(f"{number}\n" for number in range(500)))
    row = diff_stat([long]).splitlines()[0]
    bar = row.rpartition(" ")[2]
    assert len(bar) <= MAX_BAR + 1
    assert set(bar) == {"+", "-"}
