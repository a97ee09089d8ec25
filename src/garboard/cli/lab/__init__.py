"""`garboard lab`: the table of its commands; each module below is one of them."""

import click

from garboard.cli.lazy import LazyCommand, LazyGroup

COMMANDS = {
    "binaries": LazyCommand("garboard.cli.lab.binaries:binaries", "Find or make the programs that a lab runs."),
}


@click.group(cls=LazyGroup, lazy=COMMANDS, epilog="Example: garboard lab up --control-planes 3 --workers 1")
def lab() -> None:
    """A real Kubernetes cluster on this machine: nodes are namespaces, nothing else is installed."""
