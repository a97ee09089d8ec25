"""`garboard resume`: the open run of this node, carried to its end."""

import click

from garboard.cli.console import ConsoleReporter
from garboard.cli.lease_option import lease_option
from garboard.node.interpreters.leases import LeaseToken
from garboard.node.transaction import RunOptions, TimingsFormat, Transactions
from garboard.node.workflow import this_node


@click.command(epilog="Example: garboard resume --timings text")
@click.argument("run", default="")
@click.option("--undo-on-failure", is_flag=True, help="If a step fails, take back everything that the run has done.")
@click.option("--timings", type=click.Choice(["text", "json"]), help="At the end, say how long each phase took.")
@click.option("--diagnostics", metavar="DIR", help="If a step fails, keep in this folder what tells why; no secrets.")
@lease_option
def resume(
    run: str, undo_on_failure: bool, timings: TimingsFormat | None, diagnostics: str | None, lease: LeaseToken | None
) -> None:
    """Carry the open run of this node to its end; if RUN is given, only if it is that one.

    It goes on with the plan it began with. Steps that are finished are not repeated; the one that was cut short is
    looked at, and repeated unless it is already so.
    """
    options = RunOptions(
        command="resume",
        undoes_on_failure=undo_on_failure,
        timings=timings or "",
        diagnostics=diagnostics or "",
        lease=lease,
    )
    node = this_node(ConsoleReporter())
    name = Transactions(node.runs, node.reporter).resume(options, run)
    node.reporter.report(f"[resume] run {name} is finished")
