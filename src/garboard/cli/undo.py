"""`garboard undo`: what the open or unconfirmed run of this node did, taken back."""

import click

from garboard.cli.console import ConsoleReporter
from garboard.cli.lease_option import lease_option
from garboard.node.interpreters.leases import LeaseToken
from garboard.node.transaction import RunOptions, TimingsFormat, Transactions
from garboard.node.workflow import plan_text, this_node


@click.command(epilog="Example: garboard undo --dry-run")
@click.argument("run", default="")
@click.option("--dry-run", is_flag=True, help="Print the plan and change nothing.")
@click.option("--timings", type=click.Choice(["text", "json"]), help="At the end, say how long each phase took.")
@lease_option
def undo(run: str, dry_run: bool, timings: TimingsFormat | None, lease: LeaseToken | None) -> None:
    """Take back what the open run of this node did, or one that waits to be confirmed; if RUN is given, only that one.

    Files, folders, credentials, objects, services and the etcd member become what they were before the run. An undo
    that was cut short goes on where it stopped.
    """
    node = this_node(ConsoleReporter())
    transactions = Transactions(node.runs, node.reporter)
    if dry_run:
        node.reporter.show(plan_text(transactions.planned_undo(run), "text"))
        return
    name = transactions.undo(RunOptions(command="undo", timings=timings or "", lease=lease), run)
    node.reporter.report(f"[undo] run {name} is undone")
