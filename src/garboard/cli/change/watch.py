"""`garboard change watch`: what the timer of a node runs that is armed for an unconfirmed change."""

import click

from garboard.cli.console import ConsoleReporter
from garboard.node.change_watch import ChangeWatcher, edges_of
from garboard.node.workflow import this_node


@click.command(epilog="Example: garboard change watch")
def watch() -> int:
    """Keep this node's part of an unconfirmed change when it is confirmed, or take it back when its time has come.

    A timer of the node runs this; it does nothing on a node that is not armed. Ends with 0 if the change was kept, 13
    if it was taken back, 14 if somebody has edited files since, which stay as they are.
    """
    node = this_node(ConsoleReporter())
    return ChangeWatcher(node, edges_of(node)).watch()
