"""`garboard image`."""

import tempfile
from pathlib import Path

import click

from garboard.host import Machine
from garboard.lab.binaries.download import machine_architecture
from garboard.lab.bundle import garboard_image
from garboard.lab.images import write_archive
from garboard.model.image import GARBOARD_IMAGE


@click.command(epilog="Example: garboard image -o garboard.tar")
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="Archive to write.")
@click.option("--name", default=GARBOARD_IMAGE, show_default=True, help="Name of the image, with its tag.")
def image(output: Path, name: str) -> None:
    """Write an image that runs garboard, with the Python of this machine in it; no registry or Docker is needed.

    It is what the controller of a fleet and its Jobs run from, and servers and agents of a tunnel that are pods.
    """
    machine = Machine()
    with tempfile.TemporaryDirectory(prefix="garboard-image-") as staging, machine.writing(output) as into:
        made = garboard_image(name, Path(staging), machine)
        write_archive(made, into, machine, architecture=machine_architecture())
    click.echo(str(output))


# As it was called when only tunnels ran from the image.
tunnel_image = click.Command(
    "image", params=image.params, callback=image.callback, help=image.help,
    epilog="Example: garboard tunnel image -o garboard.tar",
)  # fmt: skip
