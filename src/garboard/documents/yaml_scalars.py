"""Which value a YAML scalar stands for: the YAML 1.1 rules as go-yaml v2 applies them."""

import base64
import binascii
import calendar
import math
import re
from typing import Final, TypeAlias

from garboard.documents.json_text import go_text
from garboard.documents.numbers import INT64, UINT64, settle
from garboard.documents.numbers import key_text as float_key_text

# A scalar before it becomes JSON: floats are still floats, infinities and NaN included.
Scalar: TypeAlias = str | int | float | bool | None

_TAG: Final = "tag:yaml.org,2002:"
_WORDS: Final[dict[str, bool | float | None]] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
# go-yaml tries nothing at all on text that starts otherwise.
_MAY_RESOLVE: Final = frozenset("+-0123456789.yYnNtTfFoO~")
_INTEGER: Final = re.compile(
    r"(?P<sign>[-+]?)(?:0[xX](?P<hex>[0-9a-fA-F]+)|0[bB](?P<bin>[01]+)|0[oO](?P<oct>[0-7]+)|(?P<zero>0[0-7]*)|(?P<dec>[1-9][0-9]*))"
)
_SIGNED_BINARY: Final = re.compile(r"0b([-+][01]+)")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_POINT_FLOAT: Final = re.compile(r"\.[0-9]+(_[0-9]+)*([eE][-+]?[0-9]+(_[0-9]+)*)?")
_BASE_60: Final = re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?")
_DATE: Final = r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})"
_TIME: Final = r"([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})([.,][0-9]+)?"
_ZONE: Final = r"(?:Z|[-+]([0-9]{2}):([0-9]{2}))"
_TIMESTAMP: Final = re.compile(f"{_DATE}(?:[Tt]{_TIME}{_ZONE}| +{_TIME})?")


class Impossible(ValueError):
    """A tag that its text does not satisfy; the message says which."""


def resolve(text: str) -> Scalar:
    """Return the value of a plain scalar; timestamps stay text."""
    if not text:
        return None
    first = text[0]
    if first not in _MAY_RESOLVE:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if first == ".":
        return _finite(text) if _POINT_FLOAT.fullmatch(text) else text
    if first in "+-0123456789":
        return _number(text)
    return text


def resolve_tagged(tag: str, text: str) -> Scalar:
    """Return the value of a scalar with an explicit tag; unknown tags give the text."""
    kind = tag.removeprefix(_TAG) if tag.startswith(_TAG) else ""
    if kind == "binary":
        return _decode(text)
    if kind not in ("bool", "int", "float", "null", "timestamp"):
        return text
    value = None if not text else resolve(text)
    found = "timestamp" if kind == "timestamp" and is_timestamp(text) else _kind(value)
    if found == kind:
        return value
    if kind == "float" and isinstance(value, int) and not isinstance(value, bool) and value in INT64:
        return float(value)
    raise Impossible(f"this {found} cannot be read as !!{kind}")


def as_value(scalar: Scalar) -> Scalar:
    """Return the scalar as JSON holds it: an integral float becomes an integer."""
    return settle(scalar) if type(scalar) is float and math.isfinite(scalar) else scalar


def as_key(scalar: Scalar) -> str:
    """Return the member name a scalar key becomes."""
    if isinstance(scalar, str):
        return scalar
    if isinstance(scalar, bool):
        return "true" if scalar else "false"
    if isinstance(scalar, float):
        return float_key_text(scalar)
    if scalar is None:
        raise Impossible("null cannot be a key")
    if scalar not in INT64:
        raise Impossible(f"{scalar} is too large for a key")
    return str(scalar)


def is_plain_text(text: str) -> bool:
    """Say whether `text` written without quotes is read back as text, by this reader and by older ones."""
    if not text:
        return False
    if text[0] not in _MAY_RESOLVE:
        return True
    if not isinstance(resolve(text), str):
        return False
    return not (_BASE_60.fullmatch(text) or is_timestamp(text))


def is_timestamp(text: str) -> bool:
    """Say whether go-yaml takes `text` for a point in time."""
    found = _TIMESTAMP.fullmatch(text)
    if found is None:
        return False
    year, month, day = (int(part) for part in found.group(1, 2, 3))
    if not 1 <= month <= 12 or not 1 <= day <= _days(year, month):
        return False
    hour, minute, second = (int(part or 0) for part in found.group(4, 5, 6))
    late_hour, late_minute, late_second = (int(part or 0) for part in found.group(10, 11, 12))
    zone_hour, zone_minute = (int(part or 0) for part in found.group(8, 9))
    # Go lets an offset be 24 hours or 60 minutes.
    if zone_hour > 24 or zone_minute > 60:
        return False
    return max(hour, late_hour) < 24 and max(minute, second, late_minute, late_second) < 60


def _days(year: int, month: int) -> int:
    # The calendar module knows no year 0, which is a leap year like 2000.
    return calendar.monthrange(year or 2000, month)[1]


def _number(text: str) -> Scalar:
    plain = text.replace("_", "")
    found = _INTEGER.fullmatch(plain)
    if found is not None:
        value = _integer(found)
        if value in INT64 or (value in UINT64 and not found["sign"]):
            return value
    if _FLOAT.fullmatch(plain):
        number = _finite(plain)
        return text if isinstance(number, str) else number
    binary = _SIGNED_BINARY.fullmatch(plain)
    if binary is not None and int(binary[1], 2) in INT64:
        return int(binary[1], 2)
    return text


def _integer(found: re.Match[str]) -> int:
    if found["dec"]:
        # Twenty digits hold every 64-bit number; Python refuses to convert thousands.
        size = int(found["dec"]) if len(found["dec"]) <= 20 else 2**64
    else:
        digits, base = next((found[name], base) for name, base in _BASES if found[name])
        size = int(digits, base)
    return -size if found["sign"] == "-" else size


_BASES: Final = (("hex", 16), ("bin", 2), ("oct", 8), ("zero", 8))


def _finite(text: str) -> float | str:
    number = float(text)
    return number if math.isfinite(number) else text


def _kind(value: Scalar) -> str:
    if value is None:
        return "null"
    return {bool: "bool", int: "int", float: "float"}.get(type(value), "str")


def _decode(text: str) -> str:
    packed = text.replace("\n", "").replace("\r", "")
    try:
        if len(packed) % 4:
            raise Impossible("this base64 text is cut short")
        return go_text(base64.b64decode(packed, validate=True))
    except (binascii.Error, ValueError):
        raise Impossible("this is not base64, which !!binary needs") from None
