"""`garboard lab`: the table of its commands; each module below is one of them."""

import click

from garboard.cli.lazy import LazyCommand, LazyGroup

COMMANDS = {
    "up": LazyCommand("garboard.cli.lab.up:up", "Make a lab and wait until its cluster is ready."),
    "down": LazyCommand("garboard.cli.lab.down:down", "Remove a lab without a trace."),
    "prune": LazyCommand("garboard.cli.lab.prune:prune", "Remove what is left of labs that nobody runs."),
    "exec": LazyCommand("garboard.cli.lab.exec:exec_", "Run a command in a node."),
    "binaries": LazyCommand("garboard.cli.lab.binaries:binaries", "Find or make the programs that a lab runs."),
}


@click.group(cls=LazyGroup, lazy=COMMANDS, epilog="Example: garboard lab up --control-planes 3 --workers 1")
def lab() -> None:
    """A real Kubernetes cluster on this machine: nodes are namespaces, nothing else is installed."""
