"""`garboard version`."""

import click

from garboard import __version__
from garboard.cli.output import output_option, write_data
from garboard.model import DEFAULT_VERSION, SUPPORTED_VERSIONS
from garboard.node.reporter import OutputFormat
from garboard.values import Json


@click.command(epilog="Example: garboard version --output json")
@output_option
def version(output: OutputFormat) -> None:
    """Show garboard's version and the Kubernetes minors it supports."""
    data: Json = {
        "garboard": __version__,
        "default": str(DEFAULT_VERSION),
        "supported": [{"minor": str(each.as_minor), "reference": str(each)} for each in SUPPORTED_VERSIONS],
    }
    minors = "".join(
        f"  {each.as_minor} (as {each}{', default' if each == DEFAULT_VERSION else ''})\n"
        for each in SUPPORTED_VERSIONS
    )
    write_data(data, output, text=f"garboard {__version__}\nsupported Kubernetes minors:\n{minors}")
