"""`garboard lab prune`."""

import click

from garboard.cli.lab.wiring import labs
from garboard.cli.output import OutputFormat, output_option, write_data
from garboard.documents import Json
from garboard.lab.removal import prune as remove_left_over


@click.command(epilog="Example: garboard lab prune")
@output_option
def prune(output: OutputFormat) -> None:
    """Remove what is left of labs whose processes have died; labs that run are not touched."""
    gone = remove_left_over(labs())
    data: list[Json] = [*gone]
    write_data(data, output, text="".join(f"removed what was left of lab {name}\n" for name in gone))
