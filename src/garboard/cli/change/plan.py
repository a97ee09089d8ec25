"""`garboard change plan`."""

from typing import TYPE_CHECKING

import click

from garboard.change.document import plan_document
from garboard.change.plan import ChangePlan
from garboard.change.planning import plan_change
from garboard.change.request import ChangeRequest, host_paths_in
from garboard.change.show import plan_text
from garboard.change.snapshot import ClusterSnapshot, read_snapshot
from garboard.cli.change.requests import RequestOptions, accept_option, request_options
from garboard.cli.console import write_to_stderr
from garboard.cli.output import output_option, write_data
from garboard.cli.token.access import kubeconfig_option
from garboard.host import read_file
from garboard.lazy import lazy_module
from garboard.model.paths import DEFAULT_CERTIFICATES_DIR
from garboard.node.reporter import OutputFormat

if TYPE_CHECKING:
    from garboard.node import change_observe
else:  # with a snapshot nobody asks a cluster
    change_observe = lazy_module("garboard.node.change_observe")

HAS_CHANGES, IS_BLOCKED = 10, 11
_AUTHORITY = f"{DEFAULT_CERTIFICATES_DIR}/ca.key"  # without it nothing can be issued there
_SNAPSHOT_BYTES = 64 * 1024 * 1024


@click.command(epilog="Example: garboard change plan --set 'apiServer.extraArgs[profiling]=false'")
@request_options
@click.option(
    "--observed", metavar="SNAPSHOT", help="Plan for a saved snapshot (change adopt --save) instead of a cluster."
)
@kubeconfig_option
@accept_option
@output_option
@click.pass_context
def plan(
    ctx: click.Context,
    /,
    observed: str | None,
    kubeconfig: str | None,
    accepted: tuple[str, ...],
    output: OutputFormat,
    **options: object,
) -> None:
    """Show what a change would touch, what is dangerous in it, and why. Nothing is written.

    Other fields: --set 'KubeletConfiguration:maxPods=250', --set 'apiServer.certSANs+=api.example.com', --unset
    'apiServer.extraArgs[profiling]'; a patch: --patch '{"kind": "KubeProxyConfiguration", "mode": "nftables"}'.

    Ends with 0 if there is nothing to do, 10 if there are changes, 11 if the change is blocked.
    """
    request = RequestOptions(**options).request()  # type: ignore[arg-type]
    made = plan_change(_snapshot(observed, kubeconfig, request), request, accepted)
    for warning in made.warnings:
        write_to_stderr(f"warning: {warning}\n")
    write_data(plan_document(made), output, text=plan_text(made))
    ctx.exit(exit_code(made))


def exit_code(made: ChangePlan) -> int:
    """Return the status of a plan: whether there is something to do, and whether it may be done."""
    return 0 if made.verdict == "none" else IS_BLOCKED if made.is_blocked else HAS_CHANGES


def _snapshot(observed: str | None, kubeconfig: str | None, request: ChangeRequest) -> ClusterSnapshot:
    if observed is not None:
        return read_snapshot(read_file(observed, limit=_SNAPSHOT_BYTES), source=observed)
    found = change_observe.observe_cluster(kubeconfig, paths=(_AUTHORITY, *host_paths_in(request)))
    for note in found.notes:
        write_to_stderr(f"note: {note}\n")
    return found.snapshot
