"""`garboard token`: the bootstrap tokens with which nodes join."""

from typing import TYPE_CHECKING

import click

from garboard.cli.lazy import LazyCommand, LazyGroup
from garboard.lazy import lazy_module

if TYPE_CHECKING:
    from garboard.node import configuration
else:
    configuration = lazy_module("garboard.node.configuration")

COMMANDS = {
    "create": LazyCommand("garboard.cli.token.create:create", "Make a token in the cluster."),
    "list": LazyCommand("garboard.cli.token.list:list_tokens", "Show the tokens of the cluster."),
    "delete": LazyCommand("garboard.cli.token.delete:delete", "Delete tokens from the cluster."),
    "generate": LazyCommand("garboard.cli.token:generate", "Print a random token, and make none."),
}


@click.group(cls=LazyGroup, lazy=COMMANDS, epilog="Example: garboard token create --print-join-command")
def token() -> None:
    """Make, show and delete the bootstrap tokens with which nodes join a cluster."""


@click.command(epilog="Example: garboard token generate")
def generate() -> None:
    """Print a random token, for a configuration file or `token create`; no cluster is asked."""
    click.echo(configuration.new_token())
