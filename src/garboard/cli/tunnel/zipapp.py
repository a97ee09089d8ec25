"""`garboard tunnel zipapp`."""

from pathlib import Path

import click

from garboard.host import Machine
from garboard.lab.bundle import write_zipapp


@click.command(epilog="Example: garboard tunnel zipapp -o garboard.pyz")
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="File to write.")
def zipapp(output: Path) -> None:
    """Write garboard as one file that this machine's Python, or one like it, can run.

    It unpacks itself below $XDG_CACHE_HOME (or ~/.cache, or a folder in /tmp) when it runs for the first time.
    """
    write_zipapp(output, Machine())
    click.echo(str(output))
