"""What the commands of a fleet are given: documents in files and folders."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from garboard.fleet import FleetDocuments, load_documents
from garboard.host import list_tree, read_file

_ENDINGS = (".yaml", ".yml", ".json")

files_option = click.option(
    "-f", "--filename", "files", type=click.Path(path_type=Path), multiple=True, metavar="FILE",
    help="A file or a folder of Hive's documents and the Secrets that they name; may be repeated.",
)  # fmt: skip
work_option = click.option(
    "--work", type=click.Path(path_type=Path), required=True, metavar="DIR",
    help="The folder in which the cluster is made, and that remembers what was made.",
)  # fmt: skip


def read_documents(files: Sequence[Path]) -> FleetDocuments:
    """Read all documents of files and folders."""
    return load_documents((str(path), read_file(path)) for path in _paths(files))


def _paths(files: Sequence[Path]) -> Iterator[Path]:
    for each in files:
        if each.is_dir():
            yield from (each / name for name in list_tree(each) if name.endswith(_ENDINGS))
        else:
            yield each
