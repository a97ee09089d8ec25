"""`garboard change node`."""

import click

from garboard.cli.change.carrying import yes_option
from garboard.cli.change.requests import accept_option
from garboard.cli.console import ConsoleReporter
from garboard.cli.token.access import kubeconfig_option
from garboard.node.change_apply_node import NodeRequest, follow_change, follow_unattended
from garboard.node.interpreters.leases import LeaseToken
from garboard.node.workflow import this_node


@click.command(epilog="Example: garboard change node --yes")
@yes_option
@accept_option
@click.option("--dry-run", "is_shown", is_flag=True, help="Show what would be done, and change nothing.")
@click.option(
    "--unattended",
    is_flag=True,
    help="As the agent does: only what a policy protects, nothing twice, and no second try (change agent install).",
)
@click.option("--lease", default="", metavar="HOLDER:TOKEN", hidden=True)
@kubeconfig_option
def node(
    yes: bool, accepted: tuple[str, ...], is_shown: bool, unattended: bool, lease: str, kubeconfig: str | None
) -> int:
    """Give this node what the cluster was changed to, and report that on its Node.

    It reads the target with credentials that the node has: those of the administrator on a control plane, those of the
    kubelet on a worker. Nothing happens if there is nothing to do. A step that fails takes all of it back (13); 15
    where other nodes come first.
    """
    asked = NodeRequest(
        kubeconfig=kubeconfig,
        accepted=accepted,
        is_asked=not yes,
        is_shown=is_shown,
        lease=LeaseToken.parse(lease) if lease else None,
    )
    local = this_node(ConsoleReporter())
    return follow_unattended(asked, local) if unattended else follow_change(asked, local)
