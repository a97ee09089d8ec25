"""`garboard lab down` and `garboard lab prune`."""

import click

from garboard.cli.lab.wiring import labs, name_option, report
from garboard.cli.output import output_option, write_data
from garboard.documents import Json
from garboard.lab import removal
from garboard.lab.disk import bytes_text
from garboard.lab.pruning import PruneChoice, kept
from garboard.lab.pruning import prune as prune_labs
from garboard.node.reporter import OutputFormat


@click.command(epilog="Example: garboard lab down --name lab")
@name_option
@click.option("--all", "everything", is_flag=True, help="Remove every lab of this machine.")
def down(name: str, everything: bool) -> None:
    """Remove a lab: its processes, mounts, namespaces, control groups, links and files."""
    all_labs = labs()
    for each in all_labs.records.names() if everything else [name]:
        removal.down(all_labs, each)
        report(f"lab {each} is gone")


@click.command(epilog="Example: garboard lab prune --dry-run")
@click.option(
    "--images", is_flag=True, help="Also all imported images (about 1 GB a release); the next lab makes them."
)
@click.option("--snapshots", is_flag=True, help="Also all snapshots.")
@click.option(
    "--programs", is_flag=True, help="Also all programs, and what tests keep of their own, unless there are labs."
)
@click.option("--logs", is_flag=True, help="Also the logs of labs that did not come up.")
@click.option("--all", "everything", is_flag=True, help="All of these.")
@click.option("--dry-run", is_flag=True, help="Only tell what would go.")
@output_option
def prune(
    images: bool, snapshots: bool, programs: bool, logs: bool, everything: bool, dry_run: bool, output: OutputFormat
) -> None:
    """Remove what is of no use any more, and tell how much that frees and what is kept.

    That is what is left of labs whose processes have died, snapshots that cannot be used, images of programs that have
    changed, and what builds and downloads have left. Labs that run are not touched.
    """
    all_labs = labs()
    choice = PruneChoice(
        images=images or everything,
        snapshots=snapshots or everything,
        programs=programs or everything,
        logs=logs or everything,
        dry_run=dry_run,
    )
    found = prune_labs(all_labs, choice)
    verb = "would remove" if dry_run else "removed"
    data: list[Json] = [each.as_json() for each in found]
    write_data(data, output, text="".join(f"{verb} {each}\n" for each in found))
    report(
        "on disk: " + (", ".join(f"{kind} {bytes_text(size)}" for kind, size in kept(all_labs).items()) or "nothing")
    )
