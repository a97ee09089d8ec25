"""`garboard lab prune`."""

import click

from garboard.cli.lab.wiring import labs
from garboard.cli.output import OutputFormat, output_option, write_data
from garboard.documents import Json
from garboard.lab.removal import prune as remove_left_over
from garboard.lab.removal import remove_images


@click.command(epilog="Example: garboard lab prune")
@click.option(
    "--images", is_flag=True, help="Also the imported images (about 1 GB a release); the next lab makes them."
)
@output_option
def prune(images: bool, output: OutputFormat) -> None:
    """Remove what is left of labs whose processes have died; labs that run are not touched."""
    all_labs = labs()
    gone = remove_left_over(all_labs)
    if images:
        remove_images(all_labs)
    data: list[Json] = [*gone]
    write_data(data, output, text="".join(f"removed what was left of lab {name}\n" for name in gone))
