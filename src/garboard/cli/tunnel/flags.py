"""Flags as the stock Konnectivity programs take them: `--name=value`, Go's durations and truth values, klog's flags.

Every flag of the stock programs is known; those that have no meaning here are taken and do nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import Any, Final

import click

from garboard.errors import BadUsage, GarboardError
from garboard.model.duration import Duration


class Kind(Enum):
    TEXT = auto()
    NUMBER = auto()
    DECIMAL = auto()
    TRUTH = auto()
    DURATION = auto()  # seconds
    FILE = auto()
    LIST = auto()
    REPEATED = auto()  # the flag may stand many times


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag; `default` is written as on the command line."""

    name: str
    kind: Kind
    default: str
    help: str

    @property
    def key(self) -> str:
        return self.name.replace("-", "_")


@dataclass(frozen=True, slots=True)
class Ignored:
    """A stock flag without a meaning here, whatever it says; `why` goes into the manual."""

    name: str
    why: str


Entry = Flag | Ignored

KLOG: Final[tuple[Entry, ...]] = (
    Flag("v", Kind.NUMBER, "4", "How much to log: 0 is warnings only, 5 and more is everything."),
    *(
        Ignored(name, "logs go to stderr")
        for name in (
            "logtostderr", "add-dir-header", "alsologtostderr", "log-backtrace-at", "log-dir", "log-file",
            "log-file-max-size", "one-output", "skip-headers", "skip-log-headers", "stderrthreshold", "vmodule",
            "legacy-stderr-threshold-behavior", "alsologtostderrthreshold",
        )
    ),
)  # fmt: skip
TRUTHS: Final = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}
# klog's own truth values, which may stand without a value.
_BARE: Final = frozenset({"logtostderr", "alsologtostderr", "add-dir-header", "one-output", "skip-headers",
                          "skip-log-headers"})  # fmt: skip


class GoCommand(click.Command):
    """A command whose flags are a table of entries; its callback gets their values by name."""

    def __init__(self, *args: Any, entries: Sequence[Entry], **kwargs: Any) -> None:
        self.entries = (*entries, *KLOG)
        kwargs["params"] = [_option(entry) for entry in self.entries]
        super().__init__(*args, **kwargs)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        bare = {each.name for each in self.entries if isinstance(each, Flag) and each.kind is Kind.TRUTH} | _BARE
        return super().parse_args(ctx, [_go_style(arg, bare) for arg in args])

    def invoke(self, ctx: click.Context) -> Any:
        values = {entry.key: _parse(entry, ctx.params[entry.key]) for entry in self.entries if isinstance(entry, Flag)}
        ctx.params = values
        return super().invoke(ctx)


def _option(entry: Entry) -> click.Option:
    if isinstance(entry, Flag):
        shown = entry.default if entry.default else None
        text = f"{entry.help}  [default: {shown}]" if shown else entry.help
        is_repeated = entry.kind is Kind.REPEATED
        return click.Option(
            [f"--{entry.name}", entry.key],
            default=() if is_repeated else entry.default,
            multiple=is_repeated,
            help=text,
            metavar=Kind.TEXT.name if is_repeated else entry.kind.name,
        )
    return click.Option([f"--{entry.name}", entry.name.replace("-", "_")], default=None, hidden=True)


def _go_style(arg: str, bare: set[str]) -> str:
    """`--log_file=x` and `-v=4` as click wants them; a truth value that stands alone means true."""
    if arg.startswith("-v") and arg[2:3] in ("", "="):
        return f"--v{arg[2:]}"
    if not arg.startswith("--"):
        return arg
    name, equals, value = arg[2:].partition("=")
    name = name.replace("_", "-")
    if not equals and name in bare:
        return f"--{name}=true"
    return f"--{name}{equals}{value}"


def _parse(flag: Flag, text: Any) -> Any:
    try:
        match flag.kind:
            case Kind.TEXT | Kind.REPEATED:
                return text
            case Kind.NUMBER:
                return int(text)
            case Kind.DECIMAL:
                return float(text)
            case Kind.TRUTH:
                return TRUTHS[text]
            case Kind.DURATION:
                return Duration.parse(text).seconds
            case Kind.FILE:
                return Path(text) if text else None
            case Kind.LIST:
                # `[]` is how the stock programs print an empty list.
                return tuple(word for word in text.strip("[]").split(",") if word)
    except GarboardError as error:
        raise BadUsage(f"--{flag.name}={text}: {error.message}", hint=error.hint) from error
    except (ValueError, KeyError):
        what = "a number" if flag.kind in (Kind.NUMBER, Kind.DECIMAL) else "true or false"
        raise BadUsage(f"--{flag.name}={text} is not {what}") from None
