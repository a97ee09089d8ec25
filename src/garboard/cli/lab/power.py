"""`garboard lab stop` and `garboard lab start`."""

import click

from garboard.cli.lab.wiring import labs, name_option
from garboard.lab import nodes


@click.command(epilog="Example: garboard lab stop cp2")
@name_option
@click.argument("node")
def stop(name: str, node: str) -> None:
    """Stop NODE as a power cut would: every process of it is killed, its disk stays."""
    nodes.stop(labs(), name, node)


@click.command(epilog="Example: garboard lab start cp2")
@name_option
@click.argument("node")
def start(name: str, node: str) -> None:
    """Start NODE again after `lab stop` or a crash of it."""
    nodes.start(labs(), name, node)
