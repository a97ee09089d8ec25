"""Text of scalars as Go's `%v` prints them (checked with a Go program)."""

import pytest

from garboard.documents import Json
from garboard.patches.text import go_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "<nil>"),
        (True, "true"),
        (False, "false"),
        ("a b", "a b"),
        (0, "0"),
        (-7, "-7"),
        (2**63 - 1, "9223372036854775807"),
        (0.5, "0.5"),
        (1.0, "1"),
        (-0.0, "-0"),
        (1e20, "1e+20"),
        (1e21, "1e+21"),
        (123456789.0, "1.23456789e+08"),
        (1234567.0, "1.234567e+06"),
        (2000000.5, "2.0000005e+06"),
        (100000.0, "100000"),
        (1e-4, "0.0001"),
        (1e-5, "1e-05"),
        (1.5e-7, "1.5e-07"),
        (1e100, "1e+100"),
        (123456.5, "123456.5"),
    ],
)
def test_text_is_go_s(value: Json, text: str) -> None:
    assert go_text(value) == text
