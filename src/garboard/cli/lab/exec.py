"""`garboard lab exec` and `garboard lab shell`."""

import os

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
    become(labs().enter(name, node, list(command), env=_terminal()))


@click.command(epilog="Example: garboard lab shell cp1")
@name_option
@click.argument("node")
def shell(name: str, node: str) -> None:
    """Open a shell in NODE."""
    become(labs().enter(name, node, ["/bin/bash", "-l"], env={**_terminal(), "PS1": f"{node}:\\w# "}))


def _terminal() -> dict[str, str]:
    return {"TERM": os.environ.get("TERM", "dumb")}
