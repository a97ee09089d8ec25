"""JSON as Go reads and writes it: `encoding/json` with the number rules of Kubernetes."""

import json
import math
import re
from json.encoder import encode_basestring
from typing import Final, NoReturn

from garboard.documents.json_value import DEPTH_HINT, MAX_DEPTH, Json
from garboard.documents.numbers import INT64, json_text
from garboard.documents.place import TextPlace
from garboard.errors import BadDocument

_ESCAPED_BYTE: Final = re.compile("[\udc80-\udcff]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_SURROGATE_ESCAPE: Final = re.compile(r"\\u[dD][89a-fA-F]")
_HTML: Final = str.maketrans({character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"})
_BLANKS: Final = " \t\r\n"
_HINT: Final = "check commas, quotes and brackets around this place"
_INDENT: Final = "    "


class _BadNumber(ValueError):
    """A number no float can hold."""


def _integer(text: str) -> int | float:
    # Nineteen digits and a sign hold every int64; Python refuses to convert thousands of digits.
    number = int(text) if len(text) <= 20 else None
    return number if number is not None and number in INT64 else _float(text)


def _float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise _BadNumber(f"the number {text[:40]} is out of range")
    return number


def _refuse_constant(name: str) -> NoReturn:
    raise _BadNumber(f"{name} is not JSON")


_DECODER: Final = json.JSONDecoder(parse_int=_integer, parse_float=_float, parse_constant=_refuse_constant)


def go_text(data: bytes) -> str:
    """Decode UTF-8 as Go does: every byte that is not part of a character becomes U+FFFD."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return _ESCAPED_BYTE.sub("\ufffd", data.decode("utf-8", "surrogateescape"))


def read_json(data: bytes | str, *, source: str, line: int = 1) -> Json:
    """Return the one JSON value of `data`; integers that fit 64 bits with a sign stay integers, others are floats."""
    text = go_text(data) if isinstance(data, bytes) else data
    place = TextPlace(source, line)
    value, end = decode_json(text, 0, place)
    end = skip_blanks(text, end)
    if end != len(text):
        place.refuse_at(text, end, "more text after the end of the JSON value", "keep one JSON value, or write YAML")
    return value


def decode_json(text: str, start: int, place: TextPlace) -> tuple[Json, int]:
    """Return the JSON value that starts at or after `start`, and where it ends."""
    begin = skip_blanks(text, start)
    try:
        value, end = _DECODER.raw_decode(text, begin)
    except json.JSONDecodeError as error:
        place.refuse_at(text, error.pos, error.msg[:1].lower() + error.msg[1:], _HINT)
    except _BadNumber as error:
        place.refuse_at(text, begin, str(error), "write the value in quotes if it is text")
    except RecursionError:
        _refuse_depth(text, begin, place)
    if text.count("[", begin, end) + text.count("{", begin, end) > MAX_DEPTH and _is_too_deep(value):
        _refuse_depth(text, begin, place)
    if _SURROGATE_ESCAPE.search(text, begin, end) or _SURROGATE.search(text, begin, end):
        value = _without_surrogates(value)
    return value, end


def skip_blanks(text: str, start: int) -> int:
    """Return where the next token of JSON starts."""
    while start < len(text) and text[start] in _BLANKS:
        start += 1
    return start


def _refuse_depth(text: str, begin: int, place: TextPlace) -> NoReturn:
    place.refuse_at(text, begin, f"nested deeper than {MAX_DEPTH} levels", DEPTH_HINT)


def _is_too_deep(value: Json) -> bool:
    level: list[Json] = [value]
    for _ in range(MAX_DEPTH):
        level = [member for each in level if isinstance(each, dict | list) for member in _members(each)]
    return any(isinstance(each, dict | list) for each in level)


def _members(container: dict[str, Json] | list[Json]) -> list[Json]:
    return list(container.values()) if isinstance(container, dict) else container


def _without_surrogates(value: Json) -> Json:
    if isinstance(value, dict):
        return {_SURROGATE.sub("\ufffd", key): _without_surrogates(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_without_surrogates(member) for member in value]
    return _SURROGATE.sub("\ufffd", value) if isinstance(value, str) else value


def write_json(value: Json) -> str:
    """Return a document as `kubectl -o json` prints it, with a newline at the end."""
    out: list[str] = []
    try:
        _write(value, "\n", out)
    except RecursionError:
        raise BadDocument("nested too deep to be written", hint=DEPTH_HINT) from None
    out.append("\n")
    return "".join(out)


def _write(value: Json, line_start: str, out: list[str]) -> None:
    if isinstance(value, dict) and value:
        inner = line_start + _INDENT
        lead = "{" + inner
        for key in sorted(value):
            out.append(f"{lead}{_string(key)}: ")
            _write(value[key], inner, out)
            lead = "," + inner
        out.append(line_start + "}")
    elif isinstance(value, list) and value:
        inner = line_start + _INDENT
        lead = "[" + inner
        for member in value:
            out.append(lead)
            _write(member, inner, out)
            lead = "," + inner
        out.append(line_start + "]")
    else:
        out.append(_scalar(value))


def _scalar(value: Json) -> str:
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise BadDocument("infinity and NaN cannot be written", hint="write the value as text")
        return json_text(value)
    if isinstance(value, dict | list):
        return "{}" if isinstance(value, dict) else "[]"
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _string(text: str) -> str:
    return _SURROGATE.sub("\ufffd", encode_basestring(text).translate(_HTML))
