"""Flags as click options: the values that Go's programs take, and a constructor for every kind of flag.

A flag is named without its dashes. A value is read once, here: what a command gets is typed, and what cannot be read is
refused in the words of the program whose flag it is.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from itertools import chain
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

import click

from garboard.errors import BadUsage, GarboardError, InvalidValue
from garboard.model.duration import Duration
from garboard.model.go import BOOLEANS, split_list

ValueT = TypeVar("ValueT")
Completer: TypeAlias = Callable[[click.Context, click.Parameter, str], list[str]]


class GoInteger(click.ParamType[int]):
    """An integer of 32 bits as Go's flags read it, also 0x1bb, 0b11 and the octal 010; its range is checked later."""

    name = "integer"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value)
        octal = re.fullmatch(r"([+-]?)0_?([0-7][0-7_]*)", text)
        try:
            number = int(f"{octal[1]}0o{octal[2]}" if octal else text, 0)
        except ValueError:
            self.fail(f"{text!r} is not a valid integer", param, ctx)
        if not -(1 << 31) <= number < 1 << 31:
            self.fail(f"{text!r} is out of range", param, ctx)
        return number


class GoDuration(click.ParamType[timedelta]):
    """A length of time: 8760h, 1h30m, 90s."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        try:
            return Duration.parse(str(value)).as_timedelta
        except InvalidValue as error:
            self.fail(f"{error.message}: {error.hint}", param, ctx)


class DaysOrDuration(GoDuration):
    """A length of time, also in days, which Go does not have: 30d, 720h."""

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        days = re.fullmatch(r"([0-9]{1,6})d", str(value))
        return timedelta(days=int(days[1])) if days else super().convert(value, param, ctx)


class GoStringSlice(click.ParamType[tuple[str, ...]]):
    """Items with commas between them."""

    name = "list"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        return split_list(value)


class GoStringMap(click.ParamType[tuple[tuple[str, str], ...]]):
    """`name=value,…` in its order, repeats kept."""

    name = "list"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[tuple[str, str], ...]:
        parts = [part.partition("=") for part in value.split(",")]
        if any(not equals or "=" in text for _, equals, text in parts):
            raise BadUsage(
                f'invalid argument "{value}" for "{_flag(param)}" flag: malformed key=value pair in flag value: {value}'
            )
        return tuple((name, text) for name, _, text in parts)


class StockValue(click.ParamType[ValueT]):
    """A value of the stock Konnectivity programs; `what` says in a refusal what it should have been."""

    def __init__(self, name: str, read: Callable[[str], ValueT], what: str = "", *, is_switch: bool = False) -> None:
        self.name = name
        self.read = read
        self.what = what
        self.is_switch = is_switch  # the flag may stand without a value, which then is true

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> ValueT:
        try:
            return self.read(value)
        except GarboardError as error:
            raise BadUsage(f"{_flag(param)}={value}: {error.message}", hint=error.hint) from error
        except (ValueError, KeyError):
            raise BadUsage(f"{_flag(param)}={value} is not {self.what}") from None


def _flag(param: click.Parameter | None) -> str:
    return param.opts[-1] if param else ""


def _words(text: str) -> tuple[str, ...]:
    # `[]` is how the stock programs print an empty list.
    return tuple(word for word in text.strip("[]").split(",") if word)


INTEGER: Final = GoInteger()
DURATION: Final = GoDuration()
STRING_SLICE: Final = GoStringSlice()
STRING_MAP: Final = GoStringMap()
TEXT: Final = click.STRING
NUMBER: Final = StockValue("number", int, "a number")
DECIMAL: Final = StockValue("decimal", float, "a number")
TRUTH: Final = StockValue("truth", BOOLEANS.__getitem__, "true or false", is_switch=True)
SECONDS: Final = StockValue("duration", lambda text: Duration.parse(text).seconds)
FILE: Final = StockValue("file", lambda text: Path(text) if text else None)
WORDS: Final = StockValue("list", _words)
ANY_TRUTH: Final = StockValue("truth", str, is_switch=True)


def text(name: str, summary: str, default: str = "", *, metavar: str | None = None) -> click.Option:
    return click.Option(_declared(name), default=default, show_default=bool(default), metavar=metavar, help=summary)


def choice(name: str, summary: str, choices: Sequence[str]) -> click.Option:
    return click.Option(_declared(name), type=click.Choice(choices), help=summary)


def switch(name: str, summary: str, *, letter: str = "") -> click.Option:
    """A flag that takes no value; `letter` is its short form."""
    return click.Option([*([f"-{letter}"] if letter else []), *_declared(name)], is_flag=True, help=summary)


def enabled(name: str, summary: str) -> click.Option:
    """A flag that is on unless it is given as `--name=false`; without a value it says nothing new."""
    return click.Option(
        _declared(name), type=TRUTH, default="true", show_default=True, metavar="true|false", help=summary
    )


def with_truths(params: Iterable[click.Parameter], args: Iterable[str]) -> list[str]:
    """Return the words of a line with a value for every switch that stands without one, as Go takes it."""
    kinds = ((param.opts, param.type) for param in params)
    switches = {name for names, kind in kinds if isinstance(kind, StockValue) and kind.is_switch for name in names}
    return [f"{arg}=true" if arg in switches else arg for arg in args]


def number(name: str, summary: str, default: int, *, letter: str = "") -> click.Option:
    names = [*([f"-{letter}"] if letter else []), *_declared(name)]
    return click.Option(names, type=INTEGER, default=default, show_default=True, help=summary)


def string_slice(
    name: str, summary: str, *, metavar: str | None = None, complete: Completer | None = None
) -> click.Option:
    """A list with commas that may be repeated; the command gets the items of all of them."""
    return click.Option(
        _declared(name), type=STRING_SLICE, multiple=True, callback=joined, metavar=metavar, help=summary,
        shell_complete=complete,
    )  # fmt: skip


def string_map(name: str, summary: str, *, hidden: bool = False) -> click.Option:
    """`name=value` with commas that may be repeated; the command gets the pairs of all of them."""
    return click.Option(_declared(name), type=STRING_MAP, multiple=True, callback=joined, hidden=hidden, help=summary)


def stock(name: str, kind: click.ParamType[Any], default: str, summary: str) -> click.Option:
    """A flag of a stock Konnectivity program; `default` is written as on its command line."""
    return click.Option(_declared(name), type=kind, default=default, show_default=bool(default), help=summary)


def repeated(name: str, summary: str) -> click.Option:
    """A flag of a stock Konnectivity program that may stand many times."""
    return click.Option(_declared(name), multiple=True, default=(), help=summary)


def ignored(name: str, why: str, *, is_switch: bool = False) -> click.Option:
    """A stock flag without a meaning here: it is taken, whatever it says, and the command does not get it."""
    kind = ANY_TRUTH if is_switch else TEXT
    return click.Option(_declared(name), type=kind, hidden=True, expose_value=False, help=why)


def _declared(name: str) -> list[str]:
    return [f"--{name}", name.replace("-", "_")]


def joined(_ctx: click.Context, _param: click.Parameter, values: Iterable[tuple[ValueT, ...]]) -> tuple[ValueT, ...]:
    """Return the items of all the values of a flag that may be repeated."""
    return tuple(chain.from_iterable(values))
