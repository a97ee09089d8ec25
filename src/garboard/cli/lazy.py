"""A command group that imports a command only when it runs, so that `--help` costs nothing but click."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import click


@dataclass(frozen=True, slots=True)
class LazyCommand:
    """Where a command lives (`package.module:attribute`) and the line that a listing shows for it."""

    path: str
    summary: str

    def load(self) -> click.Command:
        module, _, attribute = self.path.partition(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command


class LazyGroup(click.Group):
    """A group whose commands are a table; listing them imports none of them."""

    def __init__(self, *args: Any, lazy: Mapping[str, LazyCommand], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lazy = dict(lazy)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self.lazy.get(cmd_name)
        return entry.load() if entry else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in self.lazy.items()])
