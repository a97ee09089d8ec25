"""JSON trees to YAML, byte for byte what sigs.k8s.io/yaml writes."""

import math
from functools import lru_cache
from typing import Final

from garboard.documents.json_value import DEPTH_HINT, Json
from garboard.documents.key_order import sort_keys
from garboard.documents.numbers import INT64, UINT64, SpelledFloat, settle, yaml_text
from garboard.documents.yaml_text import is_simple_key, quoted_key, scalar_text
from garboard.errors import BadDocument

# Mappings with more members than this are rarely alike, and their order is not worth remembering.
_CACHED_KEYS: Final = 32


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
