"""Quantities as numbers."""

from fractions import Fraction

import pytest

from garboard.documents import Json
from garboard.rules.quantities import amount


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("100m", Fraction(1, 10)),
        ("1Gi", Fraction(2**30)),
        ("1.5Gi", Fraction(3 * 2**29)),
        ("2k", Fraction(2000)),
        ("1e3", Fraction(1000)),
        ("1E", Fraction(10**18)),
        ("-1", Fraction(-1)),
        (2, Fraction(2)),
        (0.5, Fraction(1, 2)),
        ("10MB", None),
        ("", None),
        (True, None),
        (None, None),
        ({}, None),
    ],
)
def test_quantity_is_a_number(value: Json, expected: Fraction | None) -> None:
    assert amount(value) == expected
