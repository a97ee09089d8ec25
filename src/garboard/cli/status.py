"""`garboard status`: the runs of this node that are neither finished nor undone."""

import click

from garboard.cli.output import output_option, write_data
from garboard.documents import Json
from garboard.node.reporter import OutputFormat
from garboard.node.runs import DamagedRun, Run, Runs, until_text


@click.command(epilog="Example: garboard status --output json")
@click.option("--all", "shows_all", is_flag=True, help="Also show the runs that are closed.")
@output_option
def status(shows_all: bool, output: OutputFormat) -> None:
    """Show the run of this node that is open or unconfirmed, how far it came and why it stopped, or who is at work."""
    store = Runs()
    runs = store.all() if shows_all else tuple(each for each in store.all() if not each.record.is_closed)
    damaged, holder = store.damaged(), store.lock_holder()
    documents: list[Json] = [*map(run_document, runs), *map(damaged_document, damaged)]
    at_work = [f"{holder} is at work on this node\n"] if holder else []
    texts = [*(run_text(each, is_at_work=bool(holder)) for each in runs), *map(damaged_text, damaged)]
    text = "".join([*at_work, *(texts or ["no run is open on this node\n"])])
    write_data({"runs": documents, "lockedBy": holder}, output, text=text)


def run_document(run: Run) -> Json:
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
        "until": record.until.isoformat() if record.until else "",
        "failure": record.failure,
    }


def damaged_document(run: DamagedRun) -> Json:
    return {"run": run.folder.name, "state": "damaged", "failure": run.error.message}


def damaged_text(run: DamagedRun) -> str:
    return f"{run.folder.name}  its journal is damaged: {run.error.message}\n  {run.error.hint}; {run.ways_out}\n"


def run_text(run: Run, *, is_at_work: bool) -> str:
    record, header = run.record, run.record.header
    lines = [
        f"{header.run}  {header.command}  {record.state}, {len(record.progress.finished)} of {record.steps} steps done"
    ]
    if record.is_open and not is_at_work:
        lines += [f"  stopped in {record.next_phase}"] if record.next_phase else []
        lines += [f"  {record.failure}"] if record.failure else []
        back = f"; it undoes {header.undoes}" if header.undoes else ""
        lines.append(f"  go on with garboard resume{', or take it back with garboard undo' * record.is_undoable}{back}")
    if record.is_unconfirmed:
        lines.append(f"  unconfirmed {until_text(run)}")
        lines.append(
            f"  keep it with garboard runs confirm {header.run}, or take it back with garboard undo {header.run}"
        )
    return "\n".join(lines) + "\n"
