"""`garboard resume`: the open run of this node, carried to its end."""

import click

from garboard.cli.workflow.telling import tell
from garboard.cli.workflow.transactions import RunOptions, TimingsFormat, Transactions
from garboard.host.node_machine import NodeMachine
from garboard.host.service_manager import service_manager


@click.command(epilog="Example: garboard resume --timings text")
@click.option("--undo-on-failure", is_flag=True, help="If a step fails, take back everything that the run has done.")
@click.option("--timings", type=click.Choice(["text", "json"]), help="At the end, say how long each phase took.")
@click.option("--diagnostics", metavar="DIR", help="If a step fails, keep in this folder what tells why; no secrets.")
def resume(undo_on_failure: bool, timings: TimingsFormat | None, diagnostics: str | None) -> None:
    """Carry the open run of this node to its end.

    It goes on with the plan it began with. Steps that are finished are not repeated; the one that was cut short is
    looked at, and repeated unless it is already so.
    """
    options = RunOptions(
        command="resume", undoes_on_failure=undo_on_failure, timings=timings or "", diagnostics=diagnostics or ""
    )
    name = Transactions(NodeMachine(service_manager())).resume(options)
    tell(f"[resume] run {name} is finished")
