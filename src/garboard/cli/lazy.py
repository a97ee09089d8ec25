"""A command group that imports a command only when it runs, so that `--help` costs nothing but click."""

import re
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

from garboard.values import dataclass

# What fits on a terminal of 80 columns beside the indentation of help texts.
EXAMPLE_WIDTH = 76


@dataclass(frozen=True, slots=True)
class LazyCommand:
    """Where a command lives (`package.module:attribute`) and the line that a listing shows for it."""

    path: str
    summary: str

    def load(self) -> click.Command:
        module, _, attribute = self.path.partition(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        _keep_examples(command)
        return command


class SuggestingGroup(click.Group):
    """A group that suggests similar names for a misspelt command, however it finds its commands."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:
            raise click.NoSuchCommand(error.command_name, possibilities=self.list_commands(ctx), ctx=ctx) from None


class LazyGroup(SuggestingGroup):
    """A group whose commands are a table; listing them imports none of them."""

    def __init__(self, *args: Any, lazy: Mapping[str, LazyCommand], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lazy = dict(lazy)
        _keep_examples(self)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self.lazy.get(cmd_name)
        return entry.load() if entry else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in self.lazy.items()])


def _keep_examples(command: click.Command) -> None:
    """Keep the line breaks of the examples below the help text: click would break lines where a shell cannot."""
    if command.epilog and not command.epilog.startswith("\b"):
        command.epilog = kept_example(command.epilog)
    if isinstance(command, click.Group):
        for each in command.commands.values():
            _keep_examples(each)


def kept_example(text: str) -> str:
    """Return a long command as lines that a shell reads as one, broken before options and quotes; click keeps them."""
    first, *options = re.split(r" (?=--?[a-z]|')", text)
    lines = [first]
    for option in options:
        # Two for the backslash that a line gets when another one follows.
        if len(lines[-1]) + 1 + len(option) + 2 > EXAMPLE_WIDTH:
            lines.append(f"    {option}")
        else:
            lines[-1] += f" {option}"
    return "\b\n" + " \\\n".join(lines)
