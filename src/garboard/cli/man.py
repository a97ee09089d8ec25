"""`garboard man`."""

import sys
from pathlib import Path

import click

from garboard import __version__
from garboard.cli.man_pages import man_pages
from garboard.errors import BadUsage
from garboard.host import make_folder, write_file


@click.command(epilog="Example: garboard man --output-dir ./man")
@click.argument("words", metavar="[COMMAND]...", nargs=-1)
@click.option("--output-dir", metavar="DIR", help="Write the pages of all commands there instead of printing one.")
@click.pass_context
def man(ctx: click.Context, /, words: tuple[str, ...], output_dir: str | None) -> None:
    """Print the manual page of COMMAND, or write those of all commands into a folder.

    To read one: garboard man patch diff | man -l -
    """
    pages = {page.name: page for page in man_pages(ctx.find_root().command, ("garboard",), __version__)}
    if output_dir is not None and words:
        raise BadUsage("--output-dir writes the pages of all commands", hint="leave COMMAND out")
    if output_dir is not None:
        make_folder(output_dir)
        for page in pages.values():
            write_file(Path(output_dir) / f"{page.name}.1", page.text.encode())
        sys.stderr.write(f"wrote {len(pages)} pages to {output_dir}\n")
        return
    name = "-".join(("garboard", *words))
    if name not in pages:
        raise BadUsage(f"there is no command {' '.join(words)!r}", hint="see `garboard --help`")
    sys.stdout.write(pages[name].text)
