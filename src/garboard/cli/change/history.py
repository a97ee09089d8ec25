"""`garboard change history`."""

import click

from garboard.change.history import compared, history_document, history_text
from garboard.cli.output import output_option, write_data
from garboard.cli.token.access import kubeconfig_option
from garboard.node.change_apply_status import read_record_of
from garboard.node.reporter import OutputFormat


@click.command(epilog="Example: garboard change history 3 5")
@click.argument("before", type=int, required=False)
@click.argument("after", type=int, required=False)
@kubeconfig_option
@output_option
def history(before: int | None, after: int | None, kubeconfig: str | None, output: OutputFormat) -> None:
    """Show who changed what, when and why; of two revisions what is different between them.

    Of a single revision its difference to the one before is shown. The newest ten are kept.
    """
    record = read_record_of(kubeconfig)
    if before is None:
        write_data(history_document(record), output, text=history_text(record))
        return
    document, text = compared(record, before, after)
    write_data(document, output, text=text)
