"""Equality of JSON values as the shared vectors define it."""

from garboard.documents import Json


def same_value(left: Json, right: Json) -> bool:
    """Return whether two values agree: 1 equals 1.0, a boolean is never a number, list order matters.

    Integers within 64 bits are exact, larger ones are as good as the floats nearest to them.
    """
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same_value(value, right[key]) for key, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same_value, left, right))
    if isinstance(left, int | float) and isinstance(right, int | float) and max(abs(left), abs(right)) >= 2**63:
        return left == right or float(left) == float(right)
    return left == right
