"""`garboard change status`."""

import click

from garboard.cli.output import output_option, write_data
from garboard.cli.token.access import kubeconfig_option
from garboard.node.change_apply_status import read_record_of, status_document, status_text
from garboard.node.reporter import OutputFormat


@click.command(epilog="Example: garboard change status -o json")
@kubeconfig_option
@output_option
def status(kubeconfig: str | None, output: OutputFormat) -> None:
    """Show how far the last change is: its revision and state, and each node with the command that takes it on."""
    record = read_record_of(kubeconfig)
    write_data(status_document(record), output, text=status_text(record))
