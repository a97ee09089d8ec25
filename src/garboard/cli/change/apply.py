"""`garboard change apply`."""

from typing import TYPE_CHECKING

import click

from garboard.change.coordinated import read_handed
from garboard.change.node_work import DriftPolicy
from garboard.change.rollout import ChangeIntent
from garboard.change.saved_plan import read_plan
from garboard.cli.change.carrying import ApplyFlags, apply_options, message_option
from garboard.cli.change.requests import RequestOptions, accept_option, drift_option, request_options
from garboard.cli.console import ConsoleReporter
from garboard.cli.token.access import kubeconfig_option
from garboard.errors import BadUsage
from garboard.host import read_file
from garboard.lazy import lazy_module
from garboard.node.change_apply import ApplyRequest, apply_change
from garboard.node.reporter import who
from garboard.node.via import Via
from garboard.node.workflow import this_node

if TYPE_CHECKING:
    from garboard.node import change_apply_via
else:  # most changes begin on the node where they are typed
    change_apply_via = lazy_module("garboard.node.change_apply_via")

_PLAN_BYTES = 64 * 1024 * 1024


@click.command(epilog="Example: garboard change apply --set 'scheduler.extraArgs[v]=2' --via 'ssh {node} sudo'")
@click.argument("plan", default="")
@request_options
@accept_option
@drift_option
@message_option
@apply_options
@kubeconfig_option
@click.option(
    "--requests", "only_requests", is_flag=True,
    help="Only write, on this node, keys and requests of certificates that an external authority has to sign.",
)  # fmt: skip
@click.option("--coordinated", is_flag=True, hidden=True)
def apply(
    plan: str,
    accepted: tuple[str, ...],
    drift: DriftPolicy,
    message: str,
    flags: ApplyFlags,
    kubeconfig: str | None,
    only_requests: bool,
    coordinated: bool,
    **options: object,
) -> int:
    """Change a cluster: this control plane first, then what nodes share; the others follow.

    PLAN is a file that change plan -o json has written: it is carried out unchanged, or refused as stale. Without it
    the same options as of change plan say what to change; --drift adopt or overwrite alone is about hand edits.

    The first node is taken back as a whole if any step of it fails (exit code 13). It ends with the commands for the
    other nodes (12), unless --wait or --via is given; 0 if nothing is left, 11 if the change is blocked, 15 while
    another one is under way, 16 if the plan is stale.
    """
    asked = RequestOptions(**options)  # type: ignore[arg-type]
    reporter = ConsoleReporter()
    is_about_edits = drift in ("adopt", "overwrite") and not asked.is_given and not plan
    if bool(plan) == asked.is_given and not is_about_edits:
        raise BadUsage("say what to change: a PLAN, or the options of change plan", hint="garboard change plan --help")
    if coordinated:
        return apply_change(flags.of(_handed(kubeconfig)), this_node(reporter))
    if plan:
        asked.refuse_names()
    typed = f"the plan {plan}" if plan else f"{asked.typed} --drift {drift}".strip() if is_about_edits else asked.typed
    intent = ChangeIntent(author=who(), message=message, request=typed, accepted=accepted, drift=drift)
    wanted = flags.of(
        ApplyRequest(
            request=None if plan else asked.asked(drift),
            saved=read_plan(read_file(plan, limit=_PLAN_BYTES), source=plan) if plan else None,
            intent=intent,
            kubeconfig=kubeconfig,
            only_requests=only_requests,
        )
    )
    if flags.via and only_requests:
        raise BadUsage("--requests is about one node", hint="run it on each control plane, before the change begins")
    if flags.via:
        return change_apply_via.apply_via(wanted, Via.parse(flags.via), this_node(reporter))
    return apply_change(wanted, this_node(reporter))


def _handed(kubeconfig: str | None) -> ApplyRequest:
    """Return what a coordinator hands over on standard input."""
    handed = read_handed(read_file("-"))
    return ApplyRequest(
        request=handed.request,
        saved=handed.saved,
        intent=handed.intent,
        kubeconfig=kubeconfig,
        replaces_unfinished=handed.replaces_unfinished,
    )
