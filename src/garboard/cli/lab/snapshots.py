"""`garboard lab snapshot` and `garboard lab snapshots`: keep a lab, list what was kept, remove it."""

import click

from garboard.cli.lab.wiring import chosen_lab, complete_snapshots, lab_argument, labs, report
from garboard.cli.output import output_option, write_data
from garboard.documents import Json
from garboard.errors import BadUsage, as_usage
from garboard.lab.snapshots.store import Snapshots, SnapshotSummary, summarize_snapshots
from garboard.lab.snapshots.taking import take
from garboard.node.reporter import OutputFormat


@click.command(epilog="Example: garboard lab snapshot lab --as fresh")
@lab_argument
@click.option("--as", "snapshot_name", metavar="SNAPSHOT", help="The name to keep it under.")
@click.option(
    "--remove",
    metavar="SNAPSHOT",
    shell_complete=complete_snapshots,
    help="Remove a snapshot; labs made of it are not touched.",
)
def snapshot(lab: str | None, name: str | None, snapshot_name: str | None, remove: str | None) -> None:
    """Keep the lab NAME as a snapshot, of which `lab up --snapshot` makes labs.

    The cluster is stopped cleanly, its files are kept, and it is started again: the command returns when the lab is
    ready as before.
    """
    if (snapshot_name is None) == (remove is None):
        raise BadUsage("pass either --as SNAPSHOT or --remove SNAPSHOT", hint="see `garboard lab snapshot --help`")
    all_labs = labs()
    if remove is not None:
        with as_usage():
            Snapshots(all_labs.machine, all_labs.home).remove(remove)
        report(f"snapshot {remove} is gone")
    elif snapshot_name is not None:
        chosen = chosen_lab(lab, name)
        with as_usage():
            take(all_labs, chosen, snapshot_name)
        report(f"lab {chosen} is kept as snapshot {snapshot_name}, and runs again")


@click.command(epilog="Example: garboard lab snapshots --output json")
@output_option
def snapshots(output: OutputFormat) -> None:
    """Show the snapshots of labs on this machine, what each takes up on disk, and which are out of date."""
    all_labs = labs()
    found = summarize_snapshots(Snapshots(all_labs.machine, all_labs.home))
    data: list[Json] = [each.as_json() for each in found]
    write_data(data, output, text=_table(found))


def _table(found: list[SnapshotSummary]) -> str:
    if not found:
        return "no snapshots; make one with `garboard lab snapshot`\n"
    rows = [("NAME", "STATE", "KUBERNETES", "BY", "NODES", "SIZE", "MADE")]
    rows += [(s.name, s.state, s.version, s.by, str(s.nodes), s.size_text, s.made_at) for s in found]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines += [f"{each.name}: {each.problem}" for each in found if each.problem]
    return "\n".join(lines) + "\n"
