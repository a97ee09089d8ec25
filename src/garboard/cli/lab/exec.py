"""`garboard lab exec`."""

import click

from garboard.cli.lab.wiring import labs, name_option
from garboard.host.processes import become


@click.command(
    "exec", context_settings={"ignore_unknown_options": True}, epilog="Example: garboard lab exec cp1 -- crictl ps"
)
@name_option
@click.argument("node")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def exec_(name: str, node: str, command: tuple[str, ...]) -> None:
    """Run COMMAND in NODE with this terminal; its exit status is ours."""
    become(labs().enter(name, node, list(command)))
