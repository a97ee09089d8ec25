"""Whether the text after `--flag=` is something the flag's type can read."""

import re
from collections.abc import Callable, Set
from dataclasses import dataclass

from garboard.schema import Flag, suggest
from garboard.schema.times import parse_duration

_BOOLEANS = frozenset({"1", "t", "T", "TRUE", "true", "True", "0", "f", "F", "FALSE", "false", "False"})
_SIZES = {
    "int": (-(2**63), 2**63 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint": (0, 2**64 - 1),
    "uint32": (0, 2**32 - 1),
    "uint64": (0, 2**64 - 1),
}


@dataclass(frozen=True, slots=True)
class BadValue:
    reason: str
    hint: str | None = None


def is_known_to_take(flag: Flag | None) -> bool:
    """Tell whether a flag without `=` takes the next word as its value; a boolean and its like never do."""
    return flag is not None and flag.type not in ("bool", "ignored", "version")


def bad_value(flag: Flag, value: str, choices: Set[str] | None) -> BadValue | None:
    """Return what is wrong with a flag's value, or nothing; the value itself is not repeated, it may be a secret."""
    if choices is not None:
        return _bad_choice(value, choices)
    check = _CHECKS.get(flag.type)
    return check(value) if check else None


def _bad_choice(value: str, choices: Set[str]) -> BadValue | None:
    for word in filter(None, (part.strip() for part in value.split(","))):
        name = word.removeprefix("-")
        if name != "*" and name not in choices:
            near = suggest(name, choices)
            return BadValue(f"{name!r} is not known to this minor", f"did you mean {near!r}?" if near else None)
    return None


def _bad_boolean(value: str) -> BadValue | None:
    return None if value in _BOOLEANS else BadValue("expected true or false")


def _bad_duration(value: str) -> BadValue | None:
    try:
        parse_duration(value)
    except ValueError as error:
        return BadValue(str(error))
    return None


def _bad_float(value: str) -> BadValue | None:
    try:
        float(value)
    except ValueError:
        return BadValue("expected a number")
    return None


def _whole(least: int, most: int) -> Callable[[str], BadValue | None]:
    def check(value: str) -> BadValue | None:
        # Go reads 0x10, 0b1, 0o7 and 1_000 as well.
        if not re.fullmatch(r"[+-]?(0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO]?[0-7_]*|[1-9][0-9_]*)", value):
            return BadValue("expected a whole number")
        number = int(value, 0) if re.fullmatch(r"[+-]?[1-9][0-9]*", value) else 0
        return None if least <= number <= most else BadValue(f"a whole number is outside {least} to {most}")

    return check


_CHECKS: dict[str, Callable[[str], BadValue | None]] = {
    "bool": _bad_boolean,
    "duration": _bad_duration,
    "float32": _bad_float,
    "float64": _bad_float,
    **{name: _whole(*size) for name, size in _SIZES.items()},
}
