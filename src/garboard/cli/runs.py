"""`garboard runs`: the runs of this node, keeping what one has done, and one that can be neither resumed nor undone."""

import click

from garboard.cli.console import ConsoleReporter
from garboard.cli.output import output_option, write_data
from garboard.cli.status import damaged_document, damaged_text, run_document, run_text
from garboard.engine import Salvage
from garboard.node.reporter import OutputFormat
from garboard.node.runs import Runs
from garboard.node.transaction import Transactions
from garboard.node.workflow import this_node
from garboard.values import Json


@click.group(epilog="Example: garboard runs forget 20261116T093000.000-3f2a-init")
def runs() -> None:
    """List the runs of this node, confirm one, or get one out of the way that can be neither resumed nor undone."""


@runs.command(name="list", short_help="List the runs of this node.", epilog="Example: garboard runs list -o json")
@output_option
def list_(output: OutputFormat) -> None:
    """List all runs of this node, the oldest first; what is closed is history."""
    store = Runs()
    found, damaged, is_at_work = store.all(), store.damaged(), bool(store.lock_holder())
    documents: list[Json] = [*map(run_document, found), *map(damaged_document, damaged)]
    texts = [*(run_text(each, is_at_work=is_at_work) for each in found), *map(damaged_text, damaged)]
    write_data({"runs": documents}, output, text="".join(texts) or "there are no runs on this node\n")


@runs.command(
    short_help="Keep what a run has done that waits to be confirmed.",
    epilog="Example: garboard runs confirm 20261118T093000.000-3f2a-change",
)
@click.argument("run", default="")
def confirm(run: str) -> None:
    """Keep for good what the unconfirmed run of this node has done; if RUN is given, only if it is that one.

    From then on it cannot be taken back by garboard undo any more.
    """
    node = this_node(ConsoleReporter())
    name = Transactions(node.runs, node.reporter).confirm(run)
    node.reporter.report(f"[runs] run {name} is confirmed")


@runs.command(
    short_help="Set aside a run whose journal is damaged.",
    epilog="Example: garboard runs forget 20261116T093000.000-3f2a-init",
)
@click.argument("run")
@output_option
def forget(run: str, output: OutputFormat) -> None:
    """Set aside the open run RUN, whose journal is damaged, and leave this node as it is.

    Nothing is taken back and nothing is finished. What the run did, and what its journal cannot tell any more, is
    printed. The journal and what the run kept, also the former content of files that it replaced, stay in a folder
    beside the runs until you remove it. A run that can be resumed or undone is not forgotten.
    """
    node = this_node(ConsoleReporter())
    found = Transactions(node.runs, node.reporter).forget(run)
    document: Json = {
        "run": run,
        "command": found.command,
        "steps": found.steps,
        "finished": found.finished,
        "unknown": [*found.unknown],
        "damagedLines": found.damaged_lines,
        "folder": found.place,
    }
    write_data(document, output, text=_text(run, found))


def _text(run: str, found: Salvage) -> str:
    lines = [f"run {run} is forgotten"]
    if not found.command:
        lines.append("its plan cannot be read: what it was to do, and what it did, is unknown")
    else:
        lines.append(f"it was {found.command}; {found.finished} of {found.steps} steps are recorded as done")
    if found.damaged_lines:
        lines.append(f"lines of its journal that cannot be read: {found.damaged_lines}")
    if found.unknown:
        lines += ["whether these steps were done is unknown:", *(f"  {each}" for each in found.unknown)]
    lines.append(f"nothing was taken back; its journal and what it had kept are in {found.place}: remove that folder")
    lines.append("once nothing is missing, for it may hold keys")
    return "\n".join(lines) + "\n"
