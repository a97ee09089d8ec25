"""Lengths of time as Go writes and reads them: `4m0s`, `8760h0m0s`, `1.5h`."""

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar, Self

from garboard.errors import InvalidValue

_UNIT_NS = {
    "ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6,
    "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9,
}  # fmt: skip
_NUMBER = re.compile(r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_PART = re.compile(r"(?=\.?[0-9])([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)(?![a-zµμ])")
_GRAMMAR = re.compile(rf"[-+]?(?:0|(?:{_PART.pattern})+)")


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A signed length of time with Go's precision; `str` and `parse` are Go's two directions."""

    nanoseconds: int = 0

    LIMIT_NS: ClassVar[int] = 2**63

    @classmethod
    def of(cls, *, hours: int = 0, minutes: int = 0, seconds: float = 0) -> Self:
        return cls((hours * 3600 + minutes * 60) * 10**9 + round(seconds * 10**9))

    @classmethod
    def parse(cls, text: str) -> Self:
        if not _GRAMMAR.fullmatch(text):
            raise InvalidValue(_why_not(text), hint="write it as 4m0s, 24h or 1h30m")
        total = sum(_part_ns(*part.groups(default="")) for part in _PART.finditer(text))
        if total >= cls.LIMIT_NS:
            raise InvalidValue(f'time: invalid duration "{text}"', hint="the longest duration is about 292 years")
        return cls(-total if text.startswith("-") else total)

    @property
    def seconds(self) -> float:
        return self.nanoseconds / 10**9

    @property
    def as_timedelta(self) -> timedelta:
        return timedelta(microseconds=self.nanoseconds // 1000)

    def __str__(self) -> str:
        if self.nanoseconds == 0:
            return "0s"
        sign = "-" if self.nanoseconds < 0 else ""
        size = abs(self.nanoseconds)
        if size < 10**9:
            return sign + _below_a_second(size)
        minutes, rest_ns = divmod(size, 60 * 10**9)
        seconds = _decimal(rest_ns, 10**9) + "s"
        hours, minutes = divmod(minutes, 60)
        if hours:
            return f"{sign}{hours}h{minutes}m{seconds}"
        return f"{sign}{minutes}m{seconds}" if minutes else sign + seconds


def _why_not(text: str) -> str:
    """Return Go's error message, which names the first part of the text that it cannot parse."""
    rest = text.lstrip("-+") if text[1:2] not in ("-", "+") else text
    while part := _PART.match(rest):
        rest = rest[part.end() :]
    number = _NUMBER.match(rest)
    if number is None:
        return f'time: invalid duration "{text}"'
    unit = re.split(r"[0-9.]", rest[number.end() :], maxsplit=1)[0]
    if not unit:
        return f'time: missing unit in duration "{text}"'
    return f'time: unknown unit "{unit}" in duration "{text}"'


def _part_ns(whole: str, fraction: str, unit: str) -> int:
    scale = _UNIT_NS[unit]
    # Go cuts what is finer than a nanosecond off.
    return int(whole or 0) * scale + int(fraction or 0) * scale // int("1" + "0" * len(fraction))


def _below_a_second(size_ns: int) -> str:
    if size_ns < 10**3:
        return f"{size_ns}ns"
    if size_ns < 10**6:
        return _decimal(size_ns, 10**3) + "µs"
    return _decimal(size_ns, 10**6) + "ms"


def _decimal(value: int, unit: int) -> str:
    whole, rest = divmod(value, unit)
    fraction = str(rest).rjust(len(str(unit)) - 1, "0").rstrip("0")
    return f"{whole}.{fraction}" if fraction else str(whole)
