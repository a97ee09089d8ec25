"""`garboard lab down`."""

import click

from garboard.cli.lab.wiring import labs, name_option, tell
from garboard.lab.removal import down as remove


@click.command(epilog="Example: garboard lab down --name lab")
@name_option
@click.option("--all", "everything", is_flag=True, help="Remove every lab of this machine.")
def down(name: str, everything: bool) -> None:
    """Remove a lab: its processes, mounts, namespaces, control groups, links and files."""
    all_labs = labs()
    for each in all_labs.records.names() if everything else [name]:
        remove(all_labs, each)
        tell(f"lab {each} is gone")
