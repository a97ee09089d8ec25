"""Moments and lengths of time as Kubernetes reads and writes them: RFC 3339 in UTC, and Go's `1h30m0s`."""

import re
from datetime import datetime, timedelta

_MOMENT = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{1,2}):([0-9]{2}):([0-9]{2})([.,][0-9]+)?(?:Z|([+-])([0-9]{2}):([0-9]{2}))"
)
_LENGTH = re.compile(r"([0-9]*)(\.?)([0-9]*)([^0-9.]+)")
_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_ERA_YEARS = 400  # the calendar repeats; years 0 and 10000 are outside what datetime can hold


def canonical_time(text: str) -> str | None:
    """Return the moment in UTC to the second, or None for the zero moment, which is written as null."""
    seconds, fraction = _moment(text)
    return None if _is_zero(seconds, fraction) else seconds + "Z"


def canonical_micro_time(text: str) -> str | None:
    """Return the moment in UTC with six digits of a second; the text must have exactly six as well."""
    seconds, fraction = _moment(text)
    if len(fraction) != 6:
        raise ValueError("the time needs six digits after the second")
    return None if _is_zero(seconds, fraction) else f"{seconds}.{fraction}Z"


def _is_zero(seconds: str, fraction: str) -> bool:
    return seconds == "0001-01-01T00:00:00" and not fraction[:9].strip("0")


def _moment(text: str) -> tuple[str, str]:
    """Return the moment in UTC without its zone, and the digits after the second."""
    found = _MOMENT.fullmatch(text)
    if found is None:
        raise ValueError("a time is written as 2026-01-31T12:00:00Z")
    year, month, day, hour, minute, second = (int(part) for part in found.groups()[:6])
    fraction, sign, zone_hours, zone_minutes = found.groups()[6:]
    era = year // _ERA_YEARS - 5
    moment = datetime(year - era * _ERA_YEARS, month, day, hour, minute, second)
    if sign:
        if int(zone_hours) > 24 or int(zone_minutes) > 60:
            raise ValueError("the zone of a time is out of range")
        offset = timedelta(hours=int(zone_hours), minutes=int(zone_minutes))
        moment = moment - offset if sign == "+" else moment + offset
    return f"{_year(moment.year + era * _ERA_YEARS)}{moment:-%m-%dT%H:%M:%S}", (fraction or "")[1:]


def _year(number: int) -> str:
    return f"-{-number:04}" if number < 0 else f"{number:04}"  # a zone can carry year 0 over the edge


def canonical_duration(text: str) -> str:
    """Return the length of time as Go writes it: `90s` becomes `1m30s`."""
    return write_duration(parse_duration(text))


def parse_duration(text: str) -> int:
    """Return the nanoseconds of a Go duration such as `1h15m30.5s`."""
    sign, rest = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    if rest == "0":
        return 0
    total, at = 0, 0
    while at < len(rest):
        found = _LENGTH.match(rest, at)
        if found is None or not (found[1] or found[3]) or found[4] not in _UNITS:
            raise ValueError("a duration is written as 1h30m or 500ms")
        total += _part(found[1], found[3], _UNITS[found[4]])
        at = found.end()
    if not rest or total > 2**63 - (sign == 1):
        raise ValueError("a duration is empty or too long")
    return sign * total


def _part(whole: str, fraction: str, unit: int) -> int:
    # Go reads the fraction as a float and stops at what 63 bits hold; its last digit depends on that.
    digits, scale = 0, 1.0
    for digit in fraction:
        if digits > (2**63 - 1) // 10 or digits * 10 + int(digit) > 2**63:
            break
        digits, scale = digits * 10 + int(digit), scale * 10
    return int(whole or "0") * unit + int(float(digits) * (float(unit) / scale))


def write_duration(nanoseconds: int) -> str:
    sign, length = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    if length == 0:
        return "0s"
    for unit, size in (("ns", 1), ("µs", 10**3), ("ms", 10**6)):
        if length < size * 1000:
            return f"{sign}{_decimal(length, size)}{unit}"
    minutes, rest = divmod(length, 60 * 10**9)
    hours, minutes_left = divmod(minutes, 60)
    text = f"{_decimal(rest, 10**9)}s"
    if minutes:
        text = f"{minutes_left}m{text}"
    return f"{sign}{hours}h{text}" if hours else f"{sign}{text}"


def _decimal(length: int, size: int) -> str:
    whole, rest = divmod(length, size)
    digits = f"{rest:0{len(str(size)) - 1}}".rstrip("0") if rest else ""
    return f"{whole}.{digits}" if digits else str(whole)
