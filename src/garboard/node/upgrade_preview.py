"""`upgrade plan` and `upgrade diff`: what an upgrade would do here, from the very plan that it would run."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from garboard.config import GivenFlags, ResolvedVersion, resolve_version
from garboard.documents import Json
from garboard.engine import Note, Plan, PutObject
from garboard.errors import GarboardError, as_usage
from garboard.model import DEFAULT_VERSION
from garboard.model.lifecycle import UpgradeConfiguration, UpgradePlan
from garboard.node.configuration import open_config
from garboard.node.observe import read_options
from garboard.node.reporter import Reporter
from garboard.node.upgrade import APPLY_WORKFLOW, NODE_WORKFLOW, PREFLIGHT, UpgradeInput
from garboard.node.workflow import LocalNode, Observed, Workflow, WorkflowRequest, this_node
from garboard.patches.unified import CONTEXT
from garboard.phases import plan_workflow, select
from garboard.phases.upgrade.available import UpgradeReport, available, candidates, series_of
from garboard.phases.upgrade.changes import UpgradeChange, UpgradeChanges, changes_of, other_steps, restarted
from garboard.phases.upgrade.context import UpgradeContext
from garboard.phases.upgrade.tree import plan_preflight
from garboard.phases.workflow import Blocked
from garboard.schema import load_schema

UpgradeWorkflow = Workflow[UpgradeInput, UpgradeContext]


def upgrade_changes(request: WorkflowRequest, reporter: Reporter) -> UpgradeChanges:
    """Return what an upgrade to a version changes on this node; without one, to the version that the cluster stores."""
    node, asked = this_node(reporter), _configured(request).diff
    version = request.argument or asked.kubernetes_version
    lines = request.flags.number("context-lines", CONTEXT)
    if "context-lines" not in request.flags.given and asked.context_lines:
        lines = asked.context_lines
    workflow = APPLY_WORKFLOW if version else NODE_WORKFLOW
    with _observed(workflow, replace(request, argument=version or None), node) as observed:
        context, plan = observed.context, _plan(workflow, observed.context)
        return UpgradeChanges(
            node=context.node_name,
            former=context.upgraded.former.kubernetes_version,
            target=context.cluster.kubernetes_version,
            changes=_changes(plan, observed, lines),
            also=other_steps(plan),
            notes=plan.notes,
        )


def _changes(plan: Plan, observed: Observed[UpgradeContext], lines: int = CONTEXT) -> tuple[UpgradeChange, ...]:
    context, cluster = observed.context, observed.cluster
    assert cluster is not None

    def find(action: PutObject) -> Mapping[str, Json] | None:
        return cluster.find(action.kind, action.namespace, action.name, api_version=action.api_version)

    schema = load_schema(context.cluster.release)
    return changes_of(plan, context.manifests, context.machine.read, find, schema, lines)


def upgrade_report(request: WorkflowRequest, reporter: Reporter) -> UpgradeReport:
    """Return to which versions the cluster can be upgraded, and what would happen with the newest of them."""
    node, asked = this_node(reporter), _configured(request).plan
    version, request = request.argument or asked.kubernetes_version, as_planned(request, asked)
    with as_usage():
        wanted = resolve_version(version) if version else None
    # A single phase needs no version: what is observed without one tells which there are.
    with _observed(APPLY_WORKFLOW, replace(request, argument=None, only=PREFLIGHT), node) as observed:
        former = observed.context.upgraded.former
        targets = ((series_of(former.release), wanted.release),) if wanted else candidates(former.release)
        assert observed.cluster is not None
        upgrades = available(observed.context, observed.cluster, targets)
    report = UpgradeReport(former.kubernetes_version, upgrades)
    return _with_findings(report, request, node) if upgrades else report


def as_planned(request: WorkflowRequest, asked: UpgradePlan) -> WorkflowRequest:
    """Return the request of an upgrade with what the section `plan` of a configuration has; flags come first."""
    flags = request.flags
    switches = {
        "allow-experimental-upgrades": bool(asked.allow_experimental_upgrades),
        "allow-release-candidate-upgrades": bool(asked.allow_rc_upgrades),
        "print-config": bool(asked.print_config),
    }
    values = {**flags.values, **{name: flags.switch(name) or value for name, value in switches.items()}}
    values["print-config"] = values["print-config"] and request.output == "text"
    values["ignore-preflight-errors"] = flags.list("ignore-preflight-errors") or asked.ignore_preflight_errors
    given = flags.given
    if "etcd-upgrade" not in given and not asked.etcd_upgrade:
        values["etcd-upgrade"], given = False, given | {"etcd-upgrade"}
    return replace(request, flags=GivenFlags(values, given))


def _with_findings(report: UpgradeReport, request: WorkflowRequest, node: LocalNode) -> UpgradeReport:
    """Return the report with what `upgrade apply` to its last version would come upon."""
    flags = GivenFlags({**request.flags.values, "print-config": False}, request.flags.given)  # it has been printed
    asked = replace(request, argument=report.upgrades[-1].target, flags=flags)
    with _observed(APPLY_WORKFLOW, asked, node) as observed:
        found = tuple(plan_preflight(observed.context))
        errors = tuple(each.error for each in found if isinstance(each, Blocked))
        report = replace(report, notes=tuple(each for each in found if isinstance(each, Note)), errors=errors)
        try:
            plan = _plan(APPLY_WORKFLOW, observed.context)
        except GarboardError as error:
            return replace(report, errors=(*errors, error))
        return replace(report, restarts=restarted(_changes(plan, observed)))


def _configured(request: WorkflowRequest) -> UpgradeConfiguration:
    path = request.flags.text("config")
    if not path:
        return UpgradeConfiguration()
    return open_config(Path(path), read_options(request.flags), ResolvedVersion(str(DEFAULT_VERSION))).upgrade().config


@contextmanager
def _observed(
    workflow: UpgradeWorkflow, request: WorkflowRequest, node: LocalNode
) -> Iterator[Observed[UpgradeContext]]:
    """Look at the node and its cluster as the workflow does before it plans; nothing is asked and nothing refused."""
    prepared = replace(workflow.prepare(request, node), is_shown=True)
    watched, _ = node.observed()
    with workflow.observe(prepared, select(workflow.phases, skip=prepared.skips), request, watched) as observed:
        yield observed


def _plan(workflow: UpgradeWorkflow, context: UpgradeContext) -> Plan:
    return plan_workflow(select(workflow.phases), context, refuses_blocked=False)
