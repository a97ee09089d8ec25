"""`garboard change resume`."""

import click

from garboard.cli.change.carrying import unasked_option, via_option
from garboard.cli.console import ConsoleReporter
from garboard.cli.token.access import kubeconfig_option
from garboard.node.change_resume import resume_change
from garboard.node.workflow import this_node


@click.command(epilog="Example: garboard change resume --via 'ssh {node} sudo'")
@unasked_option
@via_option
@kubeconfig_option
def resume(via: str, kubeconfig: str | None) -> int:
    """Go on with a change that was cut short on this machine: its own part, or, with --via, all nodes.

    Where every node is done, the change is committed. Exits with 12 while nodes are left, whose commands it shows.
    """
    return resume_change(this_node(ConsoleReporter()), via, kubeconfig)
