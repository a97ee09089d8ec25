"""What provision and deprovision are given: the documents of one deployment, and the folder in which it is made."""

from pathlib import Path

import click

from garboard.cli.fleet.inputs import FleetSelection
from garboard.fleet import ProvisionRequest

files_option = click.option(
    "-f", "--filename", "files", multiple=True, metavar="FILE",
    help="Hive's documents: files with one or more documents, folders, or - for stdin.",
)  # fmt: skip
work_option = click.option(
    "--work", type=click.Path(path_type=Path), required=True, metavar="DIR",
    help="The folder in which the cluster is made, and that remembers what was made.",
)  # fmt: skip


def requested(files: tuple[str, ...], deployment: str) -> ProvisionRequest:
    """Return what the documents ask for."""
    (request,) = FleetSelection(files, None, deployment, None).requests
    return request
