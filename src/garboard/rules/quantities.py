"""Quantities of resources as numbers, to compare them."""

from fractions import Fraction

from garboard.documents import Json
from garboard.schema.scalars import READERS, Mismatch

_POWERS = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_FACTORS = {
    **{suffix: Fraction(f"1e{power}") for suffix, power in _POWERS.items()},
    **{suffix: Fraction(1 << 10 * number) for number, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)},
}


def amount(value: Json) -> Fraction | None:
    """Return how much a quantity is, rounded up to nano units as Kubernetes does; nothing if it is none."""
    try:
        text = READERS["quantity"](value)
    except Mismatch:
        return None
    assert isinstance(text, str)
    number = text.rstrip("numkKMGTPEi")
    factor = _FACTORS.get(text[len(number) :])
    return None if factor is None else Fraction(number) * factor
