"""`garboard lab status`."""

import click

from garboard.cli.lab.wiring import labs, name_option
from garboard.cli.output import OutputFormat, output_option, write_data
from garboard.lab.overview import Status, inspect


@click.command(epilog="Example: garboard lab status --output json")
@name_option
@output_option
def status(name: str, output: OutputFormat) -> int:
    """Show the nodes of a lab, their services and whether the cluster is ready; exit 5 when it is not."""
    found = inspect(labs(), name)
    write_data(found.as_json(), output, text=_text(found))
    return 5 if found.missing else 0


def _text(found: Status) -> str:
    lines = [f"{'NODE':12}{'ROLE':16}{'ADDRESS':14}{'STATE':10}SERVICES"]
    for node in found.nodes:
        units = ", ".join(f"{unit} {word}" for unit, word in node.units.items())
        lines.append(f"{node.name:12}{node.role:16}{node.address:14}{node.state:10}{units}".rstrip())
    lines += [f"cut off from each other: {' and '.join(pair)}" for pair in found.partitions]
    lines += [f"missing: {each}" for each in found.missing] or ["ready" if found.is_cluster else "bare nodes"]
    return "\n".join(lines) + "\n"
