"""Colour, where a person reads: on a terminal, unless NO_COLOR or `--color never` says otherwise."""

import os
import re
import sys
from collections.abc import Callable
from typing import TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., object])

_DIFF = (("---", "bold"), ("+++", "bold"), ("@@", "cyan"), ("+", "green"), ("-", "red"))
_CODES = {"bold": "1", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_SEVERITY = re.compile(r"^(\S+?: )(error|warning)(\[[a-z0-9-]+\])", re.MULTILINE)


def color_option(command: Command) -> Command:
    """Add `--color auto|always|never`; the command gets whether to colour what it prints."""
    return click.option(
        "--color",
        type=click.Choice(["auto", "always", "never"]),
        default="auto",
        show_default=True,
        callback=lambda _ctx, _param, value: is_wanted(value),
        help="Colour the output; auto does so on a terminal unless NO_COLOR is set.",
    )(command)


def is_wanted(choice: str) -> bool:
    """Tell whether to colour standard output (https://no-color.org)."""
    if choice != "auto":
        return choice == "always"
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def painted(text: str, color: str) -> str:
    return f"\x1b[{_CODES[color]}m{text}\x1b[0m"


def painted_diff(line: str) -> str:
    """Return a line of a unified diff in its colour; the line break stays outside."""
    color = next((color for begin, color in _DIFF if line.startswith(begin)), None)
    body = line.rstrip("\n")
    return painted(body, color) + line[len(body) :] if color else line


def painted_findings(text: str) -> str:
    """Return findings with the severity of each in its colour."""
    colors = {"error": "red", "warning": "yellow"}
    return _SEVERITY.sub(lambda found: found[1] + painted(found[2] + found[3], colors[found[2]]), text)
