"""`garboard undo`: what the open run of this node did, taken back."""

import click

from garboard.cli.workflow.telling import tell
from garboard.cli.workflow.transactions import RunOptions, TimingsFormat, Transactions
from garboard.host.node_machine import NodeMachine
from garboard.host.service_manager import service_manager


@click.command(epilog="Example: garboard undo --dry-run")
@click.option("--dry-run", is_flag=True, help="Print the plan and change nothing.")
@click.option("--timings", type=click.Choice(["text", "json"]), help="At the end, say how long each phase took.")
def undo(dry_run: bool, timings: TimingsFormat | None) -> None:
    """Take back what the open run of this node did.

    Files, folders, credentials, objects, services and the etcd member become what they were before the run. An undo
    that was cut short goes on where it stopped.
    """
    transactions = Transactions(NodeMachine(service_manager()))
    if dry_run:
        from garboard.cli.workflow.running import show_plan

        show_plan(transactions.planned_undo(), "text")
        return
    name = transactions.undo(RunOptions(command="undo", timings=timings or ""))
    tell(f"[undo] run {name} is undone")
