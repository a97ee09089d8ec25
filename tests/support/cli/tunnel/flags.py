"""The values of a command line, without running the command."""

from typing import Any

import click

from garboard.cli.tunnel.daemon import GoCommand


def flags_of(command: click.Command, *arguments: str) -> dict[str, Any]:
    """What the callback of the command would get."""
    assert isinstance(command, GoCommand)
    got: dict[str, Any] = {}
    probe = GoCommand("probe", params=command.params, callback=lambda **values: got.update(values))
    with probe.make_context("probe", list(arguments)) as context:
        probe.invoke(context)
    return got
