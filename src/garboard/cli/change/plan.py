"""`garboard change plan`."""

import sys
from typing import TYPE_CHECKING, Literal

import click

from garboard.change.document import plan_document
from garboard.change.drift_request import AskedChange, DriftRequest
from garboard.change.drifting import drift_of_files
from garboard.change.node_work import DriftPolicy, PlanOptions
from garboard.change.plan import ChangePlan
from garboard.change.planning import plan_change
from garboard.change.request import ChangeRequest
from garboard.change.show import plan_text
from garboard.change.snapshot import ClusterSnapshot, read_snapshot
from garboard.cli.change.requests import RequestOptions, accept_option, drift_option, request_options
from garboard.cli.console import write_to_stderr
from garboard.cli.output import write_data
from garboard.cli.token.access import kubeconfig_option
from garboard.host import read_file
from garboard.lazy import lazy_module

if TYPE_CHECKING:
    from garboard.change import html
    from garboard.node import change_drift
else:  # with a snapshot nobody asks a cluster, and few plans become a page
    change_drift = lazy_module("garboard.node.change_drift")
    html = lazy_module("garboard.change.html")

HAS_CHANGES, IS_BLOCKED = 10, 11
_SNAPSHOT_BYTES = 64 * 1024 * 1024


@click.command(epilog="Example: garboard change plan --set 'apiServer.extraArgs[profiling]=false'")
@request_options
@click.option(
    "--observed", metavar="SNAPSHOT", help="Plan for a saved snapshot (change adopt --save) instead of a cluster."
)
@kubeconfig_option
@accept_option
@drift_option
@click.option(
    "-o", "--output", type=click.Choice(["text", "json", "yaml", "html"], case_sensitive=False), default="text",
    show_default=True, help="How to print the plan; html is one file for a change ticket.",
)  # fmt: skip
@click.pass_context
def plan(
    ctx: click.Context,
    /,
    observed: str | None,
    kubeconfig: str | None,
    accepted: tuple[str, ...],
    drift: DriftPolicy,
    output: Literal["text", "json", "yaml", "html"],
    **options: object,
) -> None:
    """Show what a change would touch, what is dangerous in it, and why. Nothing is written.

    Other fields: --set 'KubeletConfiguration:maxPods=250', --set 'apiServer.certSANs+=api.example.com', --unset
    'apiServer.extraArgs[profiling]'; a patch: --patch '{"kind": "KubeProxyConfiguration", "mode": "nftables"}'.

    Ends with 0 if there is nothing to do, 10 if there are changes, 11 if the change is blocked.
    """
    asked = RequestOptions(**options).asked(drift)  # type: ignore[arg-type]
    snapshot, request = _seen(observed, kubeconfig, asked)
    made = plan_change(snapshot, request, options=PlanOptions(accepted=accepted, drift=drift))
    for warning in made.warnings:
        write_to_stderr(f"warning: {warning}\n")
    if output == "html":
        sys.stdout.write(html.plan_html(plan_document(made), cluster=snapshot.cluster_info_server))
    else:
        write_data(plan_document(made), output, text=plan_text(made))
    ctx.exit(exit_code(made))


def exit_code(made: ChangePlan) -> int:
    """Return the status of a plan: whether there is something to do, and whether it may be done."""
    return 0 if made.verdict == "none" else IS_BLOCKED if made.is_blocked else HAS_CHANGES


def _seen(observed: str | None, kubeconfig: str | None, asked: AskedChange) -> tuple[ClusterSnapshot, ChangeRequest]:
    """Return the cluster, and what is asked for; a saved snapshot has of hand edits what files showed."""
    if observed is not None:
        snapshot = read_snapshot(read_file(observed, limit=_SNAPSHOT_BYTES), source=observed)
        if isinstance(asked, DriftRequest):
            return snapshot, asked.resolved(snapshot, drift_of_files)
        return snapshot, asked
    found = change_drift.observe_for(asked, kubeconfig)
    for note in found.notes:
        write_to_stderr(f"note: {note}\n")
    return found.snapshot, change_drift.resolved(asked, found)
