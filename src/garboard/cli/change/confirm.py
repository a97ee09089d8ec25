"""`garboard change confirm`."""

import click

from garboard.change.outcomes import HAS_FOLLOW_UPS, IS_DONE
from garboard.cli.change.carrying import unasked_option
from garboard.cli.console import write_to_stderr
from garboard.cli.output import output_option, write_data
from garboard.cli.token.access import kubeconfig_option
from garboard.node.change_cluster import ChangeCluster
from garboard.node.change_confirm import ConfirmResult, confirm_change
from garboard.node.reporter import OutputFormat
from garboard.node.tokens import find_kubeconfig
from garboard.values import Json


@click.command(epilog="Example: garboard change confirm")
@click.option(
    "--wait-for", "wait_s", type=click.FloatRange(min=0), default=60.0, show_default=True, metavar="SECONDS",
    help="How long to wait until all nodes have disarmed.",
)  # fmt: skip
@unasked_option
@kubeconfig_option
@output_option
def confirm(wait_s: float, kubeconfig: str | None, output: OutputFormat) -> int:
    """Keep a change that waits to be confirmed: no node takes it back any more.

    Nodes read the confirmation every 15 seconds. Ends with 0 only when all of them have disarmed; with 12 if some have
    not, or if the change is not done on every node yet, and names them; with 13 if it is being taken back.
    """
    cluster = ChangeCluster(find_kubeconfig(kubeconfig).path)
    found = confirm_change(cluster, lambda line: write_to_stderr(f"{line}\n"), wait_s=wait_s)
    write_data(_document(found), output, text=_text(found))
    return IS_DONE if found.is_settled else HAS_FOLLOW_UPS


def _text(found: ConfirmResult) -> str:
    if found.is_settled:
        return f"revision {found.revision} is confirmed, and all of its nodes have disarmed\n"
    named = ", ".join(f"{node} ({said})" for node, said in found.armed.items())
    if found.is_confirmed:
        return f"revision {found.revision} is confirmed; these nodes have not disarmed: {named}\n"
    return f"revision {found.revision} is not confirmed: it is not done on {named}\n"


def _document(found: ConfirmResult) -> Json:
    armed: list[Json] = [{"node": node, "state": said} for node, said in found.armed.items()]
    return {"revision": found.revision, "confirmed": found.is_confirmed, "armed": armed}
