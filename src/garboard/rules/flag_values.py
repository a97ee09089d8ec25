"""Values of flags by their types, as Go's flag packages and those of Kubernetes read them."""

import csv
import re
from collections.abc import Callable, Set
from ipaddress import ip_address

from garboard.model.go import BOOLEANS
from garboard.rules.quantities import amount
from garboard.schema import ComponentFlag, suggest
from garboard.schema.times import parse_duration
from garboard.values import dataclass

_SIZES = {
    "int": (-(2**63), 2**63 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint": (0, 2**64 - 1),
    "uint32": (0, 2**32 - 1),
    "uint64": (0, 2**64 - 1),
}
# Go reads 0x10, 0b1, 0o7, 017 and 1_000 as well.
_WHOLE = re.compile(r"[+-]?(0[xX](_?[0-9a-fA-F])+|0[bB](_?[01])+|0[oO](_?[0-7])+|0(_?[0-7])*|[1-9](_?[0-9])*)")
_DIGITS = "[0-9](_?[0-9])*"
_FLOAT = re.compile(
    rf"[+-]?({_DIGITS}\.?({_DIGITS})?|\.{_DIGITS})(e[+-]?{_DIGITS})?|[+-]?(inf|infinity)|[+-]?nan", re.IGNORECASE
)
_HEX_FLOAT = re.compile(r"[+-]?0[xX](_?[0-9a-fA-F])*\.?[0-9a-fA-F]*[pP][+-]?[0-9]+")
_LARGEST_SINGLE = 3.4028235677973366e38
_MOST_VERBOSITY = 2**31 - 1


@dataclass(frozen=True, slots=True)
class BadValue:
    reason: str
    hint: str | None = None


def bad_value(flag: ComponentFlag, value: str, choices: Set[str] | None) -> BadValue | None:
    """Return what is wrong with a flag's value, or nothing; the value itself is not repeated, it may be a secret."""
    if choices is not None:
        return _bad_choice(value, choices)
    check = _BY_NAME.get(flag.name) or _CHECKS.get(flag.type)
    return check(value) if check else None


def _bad_choice(value: str, choices: Set[str]) -> BadValue | None:
    for word in filter(None, (part.strip() for part in value.split(","))):
        name = word.removeprefix("-")
        if name != "*" and name not in choices:
            near = suggest(name, choices)
            return BadValue(f"{name!r} is not known to this minor", f"did you mean {near!r}?" if near else None)
    return None


def _bad_boolean(value: str) -> BadValue | None:
    return None if value in BOOLEANS else BadValue("expected true or false")


def _bad_version(value: str) -> BadValue | None:
    return None if value in BOOLEANS or value == "raw" or value.startswith("v") else BadValue("expected true or raw")


def _bad_duration(value: str) -> BadValue | None:
    try:
        parse_duration(value)
    except ValueError as error:
        return BadValue(str(error))
    return None


def _bad_double(value: str) -> BadValue | None:
    if _HEX_FLOAT.fullmatch(value):
        return None
    if not _FLOAT.fullmatch(value):
        return BadValue("expected a number")
    is_endless = float(value) in (float("inf"), float("-inf")) and "n" not in value.lower()
    return BadValue("a number is too large") if is_endless else None


def _bad_single(value: str) -> BadValue | None:
    problem = _bad_double(value)
    if problem is None and not _HEX_FLOAT.fullmatch(value) and "n" not in value.lower():
        return BadValue("a number is too large") if abs(float(value)) >= _LARGEST_SINGLE else None
    return problem


def whole_number(value: str) -> int | None:
    """Return the number that Go reads, or nothing if it reads none."""
    if not _WHOLE.fullmatch(value):
        return None
    digits = value.replace("_", "")
    return int(digits, 8) if re.fullmatch("[+-]?0[0-7]+", digits) else int(digits, 0)


def _whole(least: int, most: int) -> Callable[[str], BadValue | None]:
    def check(value: str) -> BadValue | None:
        number = whole_number(value)
        if number is None or (least == 0 and value[0] in "+-"):
            return BadValue("expected a whole number")
        return None if least <= number <= most else BadValue(f"a whole number is outside {least} to {most}")

    return check


def _bad_numbers(value: str) -> BadValue | None:
    check = _whole(*_SIZES["int32"])
    return next(filter(None, map(check, value.split(","))), None)


def _bad_list(value: str) -> BadValue | None:
    """Check a list whose elements stand between commas, quoted as in CSV."""
    if '"' not in value:
        return None
    is_bare = any(re.search(r'^[^"]+"', field) for field in re.sub(r'"([^"]|"")*"', '""', value).split(","))
    try:
        list(csv.reader([value], strict=True))
    except csv.Error:
        is_bare = True
    return BadValue("a quote stands inside an element, or has no end") if is_bare else None


def _bad_map(value: str) -> BadValue | None:
    pairs = [value] if value.count("=") == 1 else value.split(",")
    if any("=" not in pair for pair in pairs):
        return BadValue("expected key=value")
    return _bad_list(value) if len(pairs) > 1 else None


def _bad_claim(value: str) -> BadValue | None:
    return None if "=" in value else BadValue("expected key=value")


def _bad_address(value: str) -> BadValue | None:
    try:
        is_fine = not value or (ip_address(value.strip()) is not None and "%" not in value)
    except ValueError:
        is_fine = False
    return None if is_fine else BadValue("expected an IP address")


def _bad_quantity(value: str) -> BadValue | None:
    return BadValue("expected a quantity, such as 64Ki") if amount(value) is None or value.strip() != value else None


def _bad_port_range(value: str) -> BadValue | None:
    text = value.strip()
    found = re.fullmatch(r"([0-9]+)(?:([-+])([0-9]+))?", text)
    if not text:
        return None
    if found is None:
        return BadValue("expected a range of ports", "write it as 30000-32767")
    low = int(found[1])
    high = low if found[2] is None else int(found[3]) + (low if found[2] == "+" else 0)
    return None if low <= high <= 65535 else BadValue("a range of ports ends before it begins, or above 65535")


def _bad_certificate(value: str) -> BadValue | None:
    pair, colon, names = value.partition(":")
    if pair.count(",") != 1 or (colon and not names.strip()):
        return BadValue("expected CERTIFICATE,KEY or CERTIFICATE,KEY:NAME,…")
    return None


def _bad_level(value: str) -> BadValue | None:
    is_fine = re.fullmatch("[0-9]+", value) is not None and int(value) <= _MOST_VERBOSITY
    return None if is_fine else BadValue("expected a whole number")


def _bad_module(value: str) -> BadValue | None:
    for pair in filter(None, value.split(",")):
        pattern, _, level = pair.partition("=")
        if not pattern or "=" in level or _bad_level(level) is not None:
            return BadValue("expected pattern=N")
    return None


_CHECKS: dict[str, Callable[[str], BadValue | None]] = {
    "bool": _bad_boolean,
    "version": _bad_version,
    "duration": _bad_duration,
    "float32": _bad_single,
    "float64": _bad_double,
    "stringSlice": _bad_list,
    "int32Slice": _bad_numbers,
    "stringToString": _bad_map,
    "ip": _bad_address,
    "quantity": _bad_quantity,
    "portRange": _bad_port_range,
    "namedCertKey": _bad_certificate,
    "Level": _bad_level,
    "pattern=N,...": _bad_module,
    **{name: _whole(*size) for name, size in _SIZES.items()},
}
# Of two flags of one type, this one takes a single pair, and the other one anything.
_BY_NAME: dict[str, Callable[[str], BadValue | None]] = {"oidc-required-claim": _bad_claim}
