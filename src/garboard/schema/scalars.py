"""Scalars of a document as a Go field takes them and writes them back; what it refuses is a `Mismatch`."""

import base64
import re
import struct
from collections.abc import Callable

from garboard.documents import Json
from garboard.documents.numbers import INT64, UINT64, json_text, settle
from garboard.schema.quantity import canonical_quantity
from garboard.schema.times import canonical_duration, canonical_micro_time, canonical_time

_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_BOOTSTRAP_TOKEN = re.compile(r"[a-z0-9]{6}\.[a-z0-9]{16}")


class Mismatch(Exception):
    """A value that its field cannot hold. The message never has the value: it may be a secret."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path: list[str] = []  # filled from the inside out


def expected(what: str, value: Json) -> Mismatch:
    return Mismatch(f"expected {what}, found {_name_of(value)}")


def _name_of(value: Json) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "a list"
        case _:
            return "a map"


def _string(value: Json) -> Json:
    if not isinstance(value, str):
        raise expected("a string", value)
    return value


def _boolean(value: Json) -> Json:
    if not isinstance(value, bool):
        raise expected("true or false", value)
    return value


def _whole(least: int, most: int) -> Callable[[Json], int]:
    def read(value: Json) -> int:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise expected("a whole number", value)
        whole = settle(value) if isinstance(value, float) else value  # 80.0 is 80 by the time Go decodes it
        if isinstance(whole, float):
            raise Mismatch("expected a whole number, found one that is fractional or too large")
        if not least <= whole <= most:
            raise Mismatch(f"a whole number is outside {least} to {most}")
        return whole

    return read


def _double(value: Json) -> Json:
    return settle(_finite(value))


def _single(value: Json) -> Json:
    number = _to_single(_finite(value))
    shortest = (float(f"{number:.{digits}g}") for digits in range(1, 10))
    return settle(next(each for each in shortest if _to_single(each) == number))


def _finite(value: Json) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise expected("a number", value)
    try:
        return float(value)
    except OverflowError as exc:
        raise Mismatch("a number is too large") from exc


def _to_single(number: float) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", number))[0])
    except OverflowError as exc:
        raise Mismatch("a number is too large") from exc


def _bytes(value: Json) -> Json:
    if isinstance(value, list):  # Go also takes the bytes one by one
        octet = _whole(0, 255)
        return base64.b64encode(bytes(octet(each or 0) for each in value)).decode()
    if not isinstance(value, str):
        raise expected("base64 text", value)
    text = value.replace("\r", "").replace("\n", "")
    if _BASE64.fullmatch(text) is None:
        raise Mismatch("a string is not base64")
    return base64.b64encode(base64.b64decode(text)).decode()


def _quantity(value: Json) -> Json:
    match value:
        case str():
            text = value.strip()
        case bool():
            raise expected("a quantity", value)
        case int() if value in INT64 or value in UINT64:
            text = str(value)
        case int() | float():
            text = json_text(_finite(value))
        case _:
            raise expected("a quantity", value)
    return _parsed(canonical_quantity, text)


def _int_or_string(value: Json) -> Json:
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise expected("a whole number or a string", value)
    return _INT32(value)


def _duration_or_nanoseconds(value: Json) -> Json:
    return _parsed(canonical_duration, value) if isinstance(value, str) else _INT64(value)


def _bootstrap_token(value: Json) -> Json:
    if not isinstance(value, str) or _BOOTSTRAP_TOKEN.fullmatch(value) is None:
        raise Mismatch("expected a bootstrap token: six and sixteen lower-case letters or digits with a dot between")
    return value


def _text_of(parse: Callable[[str], Json], what: str) -> Callable[[Json], Json]:
    def read(value: Json) -> Json:
        if not isinstance(value, str):
            raise expected(what, value)
        return _parsed(parse, value)

    return read


def _parsed(parse: Callable[[str], Json], text: str) -> Json:
    try:
        return parse(text)
    except ValueError as exc:
        raise Mismatch(str(exc)) from exc


_INT32 = _whole(-(2**31), 2**31 - 1)
_INT64 = _whole(-(2**63), 2**63 - 1)

# What a present, non-null value becomes.
READERS: dict[str, Callable[[Json], Json]] = {
    "string": _string,
    "bool": _boolean,
    "int8": _whole(-(2**7), 2**7 - 1),
    "int16": _whole(-(2**15), 2**15 - 1),
    "int32": _INT32,
    "int64": _INT64,
    "uint8": _whole(0, 2**8 - 1),
    "uint16": _whole(0, 2**16 - 1),
    "uint32": _whole(0, 2**32 - 1),
    "uint64": _whole(0, 2**64 - 1),
    "float32": _single,
    "float64": _double,
    "bytes": _bytes,
    "quantity": _quantity,
    "time": _text_of(canonical_time, "a time"),
    "microTime": _text_of(canonical_micro_time, "a time"),
    "duration": _text_of(canonical_duration, "a duration"),
    "durationOrNanoseconds": _duration_or_nanoseconds,
    "intOrString": _int_or_string,
    "bootstrapToken": _bootstrap_token,
}

# What a field that was never set is written as; numbers are 0.
ZEROS: dict[str, Json] = {
    "string": "",
    "bool": False,
    "bytes": None,
    "quantity": "0",
    "time": None,
    "microTime": None,
    "duration": "0s",
    "bootstrapToken": "",
}

# Types that parse even a null, and fail.
REFUSES_NULL = frozenset({"duration", "bootstrapToken"})
