"""`garboard change rollback`."""

from typing import TYPE_CHECKING

import click

from garboard.change.history import asked_back
from garboard.change.rollout import ChangeIntent
from garboard.cli.change.carrying import ApplyFlags, apply_options, message_option
from garboard.cli.change.requests import accept_option
from garboard.cli.console import ConsoleReporter
from garboard.cli.token.access import kubeconfig_option
from garboard.lazy import lazy_module
from garboard.node.change_apply import ApplyRequest, apply_change
from garboard.node.reporter import who
from garboard.node.via import Via
from garboard.node.workflow import this_node

if TYPE_CHECKING:
    from garboard.node import change_apply_via
else:
    change_apply_via = lazy_module("garboard.node.change_apply_via")


@click.command(epilog="Example: garboard change rollback 3 --via 'ssh {node} sudo'")
@click.argument("revision", type=int)
@accept_option
@message_option
@apply_options
@kubeconfig_option
def rollback(revision: int, accepted: tuple[str, ...], message: str, flags: ApplyFlags, kubeconfig: str | None) -> int:
    """Change the cluster back to what REVISION has recorded, as a new revision.

    It is planned and carried out like every other change, and takes the place of one that nodes have not followed yet.
    Versions of Kubernetes are not taken back.
    """
    asked = flags.of(
        ApplyRequest(
            find_request=lambda record: asked_back(record, revision),
            command="change rollback",
            intent=ChangeIntent(author=who(), message=message, request=f"rollback {revision}", accepted=accepted),
            kubeconfig=kubeconfig,
            replaces_unfinished=True,
        )
    )
    local = this_node(ConsoleReporter())
    if flags.via:
        return change_apply_via.apply_via(asked, Via.parse(flags.via), local)
    return apply_change(asked, local)
