"""`garboard lab load`."""

from pathlib import Path

import click

from garboard.cli.lab.wiring import labs, name_option, tell
from garboard.lab.nodes import load_image


@click.command(epilog="Example: garboard lab load my-operator.tar")
@name_option
@click.argument("archives", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False))
def load(name: str, archives: tuple[Path, ...]) -> None:
    """Import image ARCHIVES (docker save, or an OCI layout in a tar) into every node."""
    for archive in archives:
        nodes = load_image(labs(), name, archive)
        tell(f"{archive.name} is in {', '.join(nodes)}")
