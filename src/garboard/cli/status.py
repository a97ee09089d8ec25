"""`garboard status`: the runs of this node that are neither finished nor undone."""

import click

from garboard.cli.output import OutputFormat, output_option, write_data
from garboard.cli.workflow.transactions import DamagedRun, Run, Transactions
from garboard.documents import Json
from garboard.host.node_machine import NodeMachine


@click.command(epilog="Example: garboard status --output json")
@click.option("--all", "shows_all", is_flag=True, help="Also show the runs that are closed.")
@output_option
def status(shows_all: bool, output: OutputFormat) -> None:
    """Show the open run of this node, how far it came and why it stopped."""
    transactions = Transactions(NodeMachine(None))
    runs = transactions.all() if shows_all else transactions.open_runs()
    damaged = transactions.damaged()
    documents: list[Json] = [*map(_document, runs), *map(_damaged_document, damaged)]
    text = "".join([*map(_text, runs), *map(_damaged_text, damaged)]) or "no run is open on this node\n"
    write_data({"runs": documents}, output, text=text)


def _document(run: Run) -> Json:
    record, header = run.record, run.record.header
    return {
        "run": header.run,
        "command": header.command,
        "state": record.state,
        "startedAt": header.started_at.isoformat(),
        "steps": record.steps,
        "finished": len(record.progress.finished),
        "next": record.next_phase,
        "undoes": header.undoes,
        "failure": record.failure,
    }


def _damaged_document(run: DamagedRun) -> Json:
    return {"run": run.folder.name, "state": "damaged", "failure": run.error.message}


def _damaged_text(run: DamagedRun) -> str:
    return f"{run.folder.name}  its journal is damaged: {run.error.message}\n  {run.error.hint}\n"


def _text(run: Run) -> str:
    record, header = run.record, run.record.header
    lines = [
        f"{header.run}  {header.command}  {record.state}, {len(record.progress.finished)} of {record.steps} steps done"
    ]
    if record.is_open:
        lines += [f"  stopped in {record.next_phase}"] if record.next_phase else []
        lines += [f"  {record.failure}"] if record.failure else []
        back = f"; it undoes {header.undoes}" if header.undoes else ""
        lines.append(f"  go on with garboard resume{', or take it back with garboard undo' * record.is_undoable}{back}")
    return "\n".join(lines) + "\n"
