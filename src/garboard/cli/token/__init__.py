"""`garboard token`: the bootstrap tokens with which nodes join."""

import click

from garboard.cli.lazy import LazyCommand, LazyGroup

COMMANDS = {
    "create": LazyCommand("garboard.cli.token.create:create", "Make a token in the cluster."),
    "list": LazyCommand("garboard.cli.token.list:list_tokens", "Show the tokens of the cluster."),
    "delete": LazyCommand("garboard.cli.token.delete:delete", "Delete tokens from the cluster."),
    "generate": LazyCommand("garboard.cli.token.generate:generate", "Print a random token, and make none."),
}


@click.group(cls=LazyGroup, lazy=COMMANDS, epilog="Example: garboard token create --print-join-command")
def token() -> None:
    """Make, show and delete the bootstrap tokens with which nodes join a cluster."""
