"""JSON trees and JSON text to YAML, byte for byte what sigs.k8s.io/yaml writes."""

import math
import re
from collections.abc import Iterable
from functools import cmp_to_key, lru_cache
from string import ascii_letters
from typing import Final

from yaml.events import ScalarEvent

from garboard.documents.json_text import write_json
from garboard.documents.json_value import DEPTH_HINT, Json
from garboard.documents.numbers import INT64, UINT64, SpelledFloat, settle, yaml_text
from garboard.documents.place import TextPlace
from garboard.documents.yaml_read import build_tree
from garboard.documents.yaml_scalars import resolve
from garboard.documents.yaml_text import is_simple_key, quoted_key, scalar_text
from garboard.documents.yaml_tree import TreeBuilder
from garboard.errors import BadDocument

# Mappings with more members than this are rarely alike, and their order is not worth remembering.
_CACHED_KEYS: Final = 32
# How the YAML writer spells what JSON text may hold as it is and the YAML reader then stumbles over.
_ODD_CHARACTER = re.compile(r"\\(?:N|x[789]|uFFF)")

# Letters after everything else, each kind by code point. Right for keys of ASCII without digits, which is nearly all.
_LETTERS_LAST = {ord(letter): ord(letter) + 0x80 for letter in ascii_letters}


def write_yaml(value: Json) -> str:
    """Return the YAML text of a document, as kubeadm and `kubectl -o yaml` print it."""
    out: list[str] = []
    try:
        if isinstance(value, dict) and value:
            _write_map(value, 0, out)
        elif isinstance(value, list) and value:
            _write_list(value, 0, out)
        else:
            out.append(_ended(_scalar(value, 0, 2)))
    except RecursionError:
        raise BadDocument("nested too deep to be written", hint=DEPTH_HINT) from None
    return "".join(out)


def _write_map(value: dict[str, Json], indent: int, out: list[str]) -> None:
    """Write the members; the first starts where the text stands, the others on lines of their own."""
    pad = ""
    keys = tuple(value)
    members = _cached_heads(keys) if len(keys) <= _CACHED_KEYS else _heads(keys)
    for key, head in members:
        out.append(pad)
        pad = " " * indent
        member = value[key]
        if not head:
            _write_explicit(key, member, indent, out)
        elif isinstance(member, dict) and member:
            out.append(f"{head}\n{pad}  ")
            _write_map(member, indent + 2, out)
        elif isinstance(member, list) and member:
            out.append(f"{head}\n{pad}")
            _write_list(member, indent, out)
        else:
            out.append(f"{head} {_ended(_scalar(member, indent + len(head) + 1, indent + 2))}")


def _write_list(value: list[Json], indent: int, out: list[str]) -> None:
    lead = "- "
    for member in value:
        out.append(lead)
        lead = " " * indent + "- "
        _write_inline(member, indent + 2, out)


def _write_explicit(key: str, member: Json, indent: int, out: list[str]) -> None:
    """Write a member whose key is too long, or has too many lines, to stand before a colon."""
    out.append("? " + _ended(scalar_text(key, indent + 2, indent + 2)) + " " * indent + ": ")
    _write_inline(member, indent + 2, out)


def _write_inline(member: Json, indent: int, out: list[str]) -> None:
    """Write a value that starts on the line of its dash or colon."""
    if isinstance(member, dict) and member:
        _write_map(member, indent, out)
    elif isinstance(member, list) and member:
        _write_list(member, indent, out)
    else:
        out.append(_ended(_scalar(member, indent, indent)))


def _heads(keys: tuple[str, ...]) -> list[tuple[str, str]]:
    return [(key, quoted_key(key) + ":" if is_simple_key(key) else "") for key in sort_keys(keys)]


_cached_heads = lru_cache(4096)(_heads)


def _ended(text: str) -> str:
    # A literal block that ends with breaks has ended its line already.
    return text if text[-1] in "\n\u2028\u2029" else text + "\n"


def _scalar(value: Json, column: int, indent: int) -> str:
    if isinstance(value, str):
        return scalar_text(value, column, indent)
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, int):
        return str(value) if value in INT64 or value in UINT64 else yaml_text(float(value))
    if isinstance(value, float):
        return _float(value)
    return "{}" if isinstance(value, dict) else "[]"


def _float(value: float) -> str:
    if not math.isfinite(value):
        raise BadDocument("infinity and NaN cannot be written", hint="write the value as text")
    number = value if type(value) is SpelledFloat else settle(value)
    return str(number) if isinstance(number, int) else yaml_text(number)


class _SpellingBuilder(TreeBuilder):
    """Builds a tree in which a number written as a float is one, also `1e6`."""

    def _value(self, event: ScalarEvent) -> Json:
        number = resolve(event.value)
        return SpelledFloat(number) if isinstance(number, float) else super()._value(event)


def json_to_yaml(data: bytes | str, *, source: str) -> str:
    """Return JSON text as YAML. The text is read by the YAML reader, so what that refuses is refused here.

    Unlike `write_yaml` of a tree, this keeps the kind of a number as it is spelled: `1e6` is written `1e+06`.
    """
    return write_yaml(build_tree(data, TextPlace(source), _SpellingBuilder)[0])


def marshal_yaml(document: Json, *, source: str) -> str:
    """Return a document as YAML by way of JSON text, as Go programs do: a next line becomes a space, DEL is refused."""
    text = write_yaml(document)
    return json_to_yaml(write_json(document), source=source) if _ODD_CHARACTER.search(text) else text


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
