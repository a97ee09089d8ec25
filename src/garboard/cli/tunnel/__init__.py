"""`garboard tunnel`: the table of its commands."""

import click

from garboard.cli.lazy import LazyCommand, LazyGroup

COMMANDS = {
    "server": LazyCommand("garboard.cli.tunnel.server:server", "Run a Konnectivity proxy server."),
    "agent": LazyCommand("garboard.cli.tunnel.agent:agent", "Run a Konnectivity agent."),
}


@click.group(cls=LazyGroup, lazy=COMMANDS, epilog="Example: garboard tunnel agent --ca-cert=ca.crt")
def tunnel() -> None:
    """Konnectivity: reach a cluster's nodes through connections that the nodes open themselves."""
