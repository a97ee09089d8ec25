"""`garboard change unlock`."""

import click

from garboard.cli.change.carrying import yes_option
from garboard.cli.console import ConsoleReporter
from garboard.cli.token.access import kubeconfig_option
from garboard.node import change_resume
from garboard.node.workflow import this_node


@click.command(epilog="Example: garboard change unlock")
@yes_option
@kubeconfig_option
def unlock(yes: bool, kubeconfig: str | None) -> int:
    """Break the Lease of the control plane, and close what this machine was going through nodes with.

    For a machine that is gone for good: whoever is at work would lose its place, and two would change nodes at once.
    It says who holds the Lease, and what that one has left half done. Nodes that were cut short are resumed or taken
    back there, with garboard resume or undo.
    """
    return change_resume.unlock(this_node(ConsoleReporter()), kubeconfig, is_asked=not yes)
