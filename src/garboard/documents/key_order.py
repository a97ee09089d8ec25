"""The order in which go-yaml writes the keys of a mapping: natural, not by bytes."""

from collections.abc import Iterable
from functools import cmp_to_key
from string import ascii_letters

# Letters after everything else, each kind by code point. Right for keys of ASCII without digits, which is nearly all.
_LETTERS_LAST = {ord(letter): ord(letter) + 0x80 for letter in ascii_letters}


def sort_keys(keys: Iterable[str]) -> list[str]:
    """Return the keys as go-yaml orders them: letters last, digit runs by value, shorter prefixes first."""
    listed = list(keys)
    if all(key.isascii() and not any(map(key.__contains__, "0123456789")) for key in listed):
        return sorted(listed, key=_simple_rank)
    return sorted(listed, key=cmp_to_key(_compare))


def _simple_rank(key: str) -> str:
    return key.translate(_LETTERS_LAST)


def _compare(one: str, other: str) -> int:
    for place, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return -1 if _is_before(one, other, place) else 1
    return len(one) - len(other)


def _is_before(one: str, other: str, place: int) -> bool:
    left, right = one[place], other[place]
    if left.isalpha() and right.isalpha():
        return left < right
    if left.isalpha() or right.isalpha():
        return right.isalpha()
    # A zero that differs continues a number when a digit other than zero stands before it.
    lead = 1 if "0" in (left, right) and _continues_number(one, place) else 0
    left_value, left_end = _digit_run(one, place, lead)
    right_value, right_end = _digit_run(other, place, lead)
    if left_value != right_value:
        return left_value < right_value
    if left_end != right_end:
        return left_end < right_end
    return left < right


def _continues_number(key: str, place: int) -> bool:
    for digit in reversed(key[:place]):
        if not digit.isdecimal():
            return False
        if digit != "0":
            return True
    return False


def _digit_run(key: str, place: int, lead: int) -> tuple[int, int]:
    value = lead
    end = place
    while end < len(key) and key[end].isdecimal():
        value = value * 10 + ord(key[end]) - ord("0")
        end += 1
    # Go counts in 64 bits and wraps around.
    return (value + 2**63) % 2**64 - 2**63, end
