"""`garboard lab partition` and `garboard lab heal`."""

import click

from garboard.cli.lab.wiring import labs, name_option
from garboard.lab import nodes


@click.command(epilog="Example: garboard lab partition cp1 cp2")
@name_option
@click.argument("one")
@click.argument("other")
def partition(name: str, one: str, other: str) -> None:
    """Cut nodes ONE and OTHER off from each other; both still reach the endpoint and every other node."""
    nodes.partition(labs(), name, one, other)


@click.command(epilog="Example: garboard lab heal cp1 cp2")
@name_option
@click.argument("between", nargs=-1, metavar="[ONE OTHER]")
def heal(name: str, between: tuple[str, ...]) -> None:
    """Undo the partition of two nodes, or without names every partition."""
    nodes.heal(labs(), name, between)
