"""`garboard lab list`."""

import click

from garboard.cli.lab.wiring import labs
from garboard.cli.output import OutputFormat, output_option, write_data
from garboard.documents import Json
from garboard.lab.overview import Summary, summarize


@click.command("list", epilog="Example: garboard lab list --output json")
@output_option
def list_(output: OutputFormat) -> None:
    """Show the labs of this machine."""
    found = summarize(labs())
    data: list[Json] = [each.as_json() for each in found]
    write_data(data, output, text=_table(found))


def _table(found: list[Summary]) -> str:
    if not found:
        return "no labs; make one with `garboard lab up`\n"
    rows = [("NAME", "STATE", "KUBERNETES", "BY", "NODES", "MEMORY", "ENDPOINT")]
    rows += [(s.name, s.state, s.version, s.by, str(s.nodes), s.memory_text, s.endpoint) for s in found]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "".join(
        "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() + "\n" for row in rows
    )
