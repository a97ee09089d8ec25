"""`garboard undo`: what the open or unconfirmed run of this node did, taken back."""

import click

from garboard.cli.console import ConsoleReporter
from garboard.cli.lease_option import lease_option
from garboard.errors import BadUsage
from garboard.node.interpreters.leases import LeaseToken
from garboard.node.transaction import RunOptions, TimingsFormat, Transactions
from garboard.node.workflow import plan_text, this_node


@click.command(epilog="Example: garboard undo --dry-run")
@click.argument("run", default="")
@click.option("--dry-run", is_flag=True, help="Print the plan and change nothing.")
@click.option("--overdue", is_flag=True, help="Only a run that nobody has confirmed in time; without one, do nothing.")
@click.option("--timings", type=click.Choice(["text", "json"]), help="At the end, say how long each phase took.")
@lease_option
def undo(run: str, dry_run: bool, overdue: bool, timings: TimingsFormat | None, lease: LeaseToken | None) -> None:
    """Take back what the open run of this node did, or one that waits to be confirmed; if RUN is given, only that one.

    Files, folders, credentials, objects, services and the etcd member become what they were before the run. An undo
    that was cut short goes on where it stopped.
    """
    node = this_node(ConsoleReporter())
    transactions = Transactions(node.runs, node.reporter)
    options = RunOptions(command="undo", timings=timings or "", lease=lease)
    if overdue:
        _undo_overdue(transactions, options, is_alone=not (run or dry_run))
        return
    if dry_run:
        node.reporter.show(plan_text(transactions.planned_undo(run), "text"))
        return
    name = transactions.undo(options, run)
    node.reporter.report(f"[undo] run {name} is undone")


def _undo_overdue(transactions: Transactions, options: RunOptions, *, is_alone: bool) -> None:
    if not is_alone:
        raise BadUsage("--overdue finds its run itself", hint="give neither RUN nor --dry-run with it")
    name = transactions.undo_overdue(options)
    told = f"nobody confirmed run {name} in time; it is undone" if name else "no run is overdue; nothing was changed"
    transactions.reporter.report(f"[undo] {told}")
