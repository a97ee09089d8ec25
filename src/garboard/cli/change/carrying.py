"""How commands that change a cluster are told to carry it out: options, and what they make of a request."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import TypeVar

import click

from garboard.change.confirming import ConfirmTimes
from garboard.errors import BadUsage, as_usage
from garboard.model.duration import Duration
from garboard.node.change_apply import ApplyRequest
from garboard.node.interpreters.leases import LeaseToken
from garboard.values import dataclass

Command = TypeVar("Command", bound=Callable[..., object])

yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask.")
unasked_option = click.option(
    "-y", "--yes", is_flag=True, expose_value=False, help="For scripts that say it everywhere: nothing is asked here."
)
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
    click.option(
        "--confirm-within",
        default="",
        metavar="DURATION",
        help="Take the change back on all nodes unless garboard change confirm keeps it so long after the last of them"
        " is done, such as 5m.",
    ),
    click.option(
        "--rollout-within",
        default="",
        metavar="DURATION",
        help="With --confirm-within: how long the nodes may take for the change; then it is taken back, too."
        "  [default: 7 minutes for each]",
    ),
    click.option("--revert-slot", default="", metavar="DURATION", hidden=True),
    click.option("--lease", default="", metavar="HOLDER:TOKEN", hidden=True),
)


_FLAGS = (
    "yes", "waits", "drains", "is_shown", "via", "lease", "confirm_within", "rollout_within", "revert_slot",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyFlags:
    """What was given on the command line about how a change is carried out."""

    yes: bool = False
    waits: bool = False
    drains: bool = False
    is_shown: bool = False
    via: str = ""
    confirm_within: str = ""
    rollout_within: str = ""
    revert_slot: str = ""
    lease: str = ""

    def of(self, asked: ApplyRequest) -> ApplyRequest:
        """Return a request that is carried out in this way."""
        intent = replace(asked.intent, drains=self.drains or asked.intent.drains)
        return replace(
            asked,
            is_asked=not self.yes,
            waits=self.waits,
            is_shown=self.is_shown,
            intent=replace(intent, confirm=self._confirm) if self.confirm_within else intent,
            lease=LeaseToken.parse(self.lease) if self.lease else None,
        )

    @property
    def _confirm(self) -> ConfirmTimes:
        times = ConfirmTimes(confirm_s=_seconds(self.confirm_within), rollout_s=_seconds(self.rollout_within))
        return replace(times, slot_s=_seconds(self.revert_slot)) if self.revert_slot else times


def _seconds(text: str) -> int:
    """Return a length of time in whole seconds; one that is no time at all is refused."""
    if not text:
        return 0
    with as_usage():
        seconds = Duration.parse(text).seconds
    if seconds < 1:
        raise BadUsage(f"{text} is too short to confirm anything", hint="write it as 5m or 90s")
    return math.ceil(seconds)


def apply_options(command: Command) -> Command:
    """Add the options, and give the command all of them as `flags`."""

    @wraps(command)
    def with_flags(*words: object, **given: object) -> object:
        own = {name: given.pop(name) for name in _FLAGS}
        return command(*words, flags=ApplyFlags(**own), **given)  # type: ignore[arg-type]

    decorated: Callable[..., object] = with_flags
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated  # type: ignore[return-value]
