"""`--lease`: the Lease that a coordinator holds for a run which it continues or takes back on this node."""

from collections.abc import Callable
from typing import TypeVar

import click

from garboard.node.interpreters.leases import LeaseToken

Command = TypeVar("Command", bound=Callable[..., object])


def lease_option(command: Command) -> Command:
    """Add `--lease HOLDER:TOKEN`, which people have no use for: a run without it acquires the Lease itself."""

    def read(_context: click.Context, _parameter: click.Parameter, text: str | None) -> LeaseToken | None:
        return LeaseToken.parse(text) if text else None

    return click.option("--lease", metavar="HOLDER:TOKEN", callback=read, hidden=True)(command)
