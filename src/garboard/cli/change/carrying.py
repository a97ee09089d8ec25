"""How commands that change a cluster are told to carry it out: options, and what they make of a request."""

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import TypeVar

import click

from garboard.node.change_apply import ApplyRequest
from garboard.node.interpreters.leases import LeaseToken
from garboard.values import dataclass

Command = TypeVar("Command", bound=Callable[..., object])

yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask.")
via_option = click.option(
    "--via", default="", metavar="COMMAND",
    help="Go through all nodes, in order, with a command that runs another one there, such as 'ssh {node} sudo'.",
)  # fmt: skip
message_option = click.option("--message", default="", metavar="TEXT", help="Why, for change history.")
_OPTIONS = (
    yes_option,
    click.option("--wait", "waits", is_flag=True, help="Wait for who is at work, and until all nodes have followed."),
    click.option("--drain", "drains", is_flag=True, help="Drain each node while its kubelet is restarted."),
    click.option("--dry-run", "is_shown", is_flag=True, help="Show what would be done, and change nothing."),
    via_option,
    click.option("--lease", default="", metavar="HOLDER:TOKEN", hidden=True),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyFlags:
    """What was given on the command line about how a change is carried out."""

    yes: bool = False
    waits: bool = False
    drains: bool = False
    is_shown: bool = False
    via: str = ""
    lease: str = ""

    def of(self, asked: ApplyRequest) -> ApplyRequest:
        """Return a request that is carried out in this way."""
        return replace(
            asked,
            is_asked=not self.yes,
            waits=self.waits,
            drains=self.drains or asked.drains,
            is_shown=self.is_shown,
            lease=LeaseToken.parse(self.lease) if self.lease else None,
        )


def apply_options(command: Command) -> Command:
    """Add the options, and give the command all of them as `flags`."""

    @wraps(command)
    def with_flags(*words: object, **given: object) -> object:
        own = {name: given.pop(name) for name in ("yes", "waits", "drains", "is_shown", "via", "lease")}
        return command(*words, flags=ApplyFlags(**own), **given)  # type: ignore[arg-type]

    decorated: Callable[..., object] = with_flags
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated  # type: ignore[return-value]
