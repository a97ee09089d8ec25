"""All nodes of a cluster upgraded from one machine, through the operator's command: control planes, then workers."""

import json
import socket
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from garboard.config import GivenFlags, resolve_version
from garboard.documents import Json, write_yaml
from garboard.engine import ClusterPlan, NodePart
from garboard.errors import BadUsage, GarboardError, NotReady, as_usage
from garboard.model import DEFAULT_VERSION
from garboard.model.paths import ADMIN_CONF, KUBELET_CONF
from garboard.node.change_record import refuse_while_changing
from garboard.node.coordination import coordinator_on
from garboard.node.coordinator import Coordinator, CoordinatorStopped
from garboard.node.interpreters.objects import NodeCluster
from garboard.node.reporter import OutputFormat, Reporter
from garboard.node.via import Via
from garboard.node.wiring import RunSettings
from garboard.node.workflow import LocalNode, Workflow, WorkflowRequest, run_workflow, this_node
from garboard.phases.upgrade.cluster import nodes_of
from garboard.phases.upgrade.context import UpgradeContext, node_name_of
from garboard.phases.upgrade.nodes import cluster_plan_text, plan_cluster

COMMAND = "upgrade apply"
# Given to the command of each node as they are here; a directory of patches is read on each node.
_PASSED_ON = ("certificate-renewal", "etcd-upgrade", "ignore-preflight-errors", "patches", "drift")
_OF_APPLY = ("allow-experimental-upgrades", "allow-release-candidate-upgrades", "force")


def apply_upgrade(
    workflow: Workflow[Any, UpgradeContext], request: WorkflowRequest, reporter: Reporter, others: frozenset[str]
) -> None:
    """Upgrade this node, the first one; or with `--via` the whole cluster. `others` are the phases of other nodes."""
    via = request.flags.text("via")
    if not via:
        run_workflow(workflow, request, reporter)
        return
    if "config" in request.flags.given:
        raise BadUsage("--config does not go with --via", hint="give the settings as flags: each node gets them")
    _upgrade_cluster(Via.parse(via), request, this_node(reporter), others)


def _upgrade_cluster(via: Via, request: WorkflowRequest, node: LocalNode, others: frozenset[str]) -> None:
    flags = request.flags
    version = _version(request)
    kubeconfig = flags.text("kubeconfig") or ADMIN_CONF
    name = node_name_of(node.machine) if node.machine.read(KUBELET_CONF) is not None else socket.gethostname()
    cluster = NodeCluster(node.machine, kubeconfig, "", report=node.reporter.report)
    nodes = nodes_of(cluster.list_all("Node"))
    if not any(each.is_control_plane for each in nodes):
        raise NotReady("the cluster has no node that is labelled as a control plane", hint="kubectl get nodes")
    plan = plan_cluster(nodes, version, (*_words(flags, _OF_APPLY), *_skips(flags)), _skips(flags, others), first=name)
    plan = _with_flags(plan, _words(flags, (*_PASSED_ON, "drain")))
    if flags.switch("dry-run"):
        node.reporter.show(_shown(plan, request.output))
        return
    refuse_while_changing(cluster.reader)
    coordinator = coordinator_on(node, via, RunSettings(kubeconfig=kubeconfig, node_name=name))
    command = f"{COMMAND} {version}"
    try:
        _go_through(coordinator, command, plan, request, node)
    except CoordinatorStopped as error:
        error.hint = f"{error.hint}; the same command goes on from there"
        raise
    node.reporter.report(f"[coordinator] all {len(nodes)} nodes are upgraded to {version}")


def _go_through(
    coordinator: Coordinator, command: str, plan: ClusterPlan, request: WorkflowRequest, node: LocalNode
) -> None:
    """Begin with the plan, or go on with what the same command has begun, with the flags that it has now."""
    left = next((each for each in coordinator.records() if each.is_open and each.command == command), None)
    if left:
        node.reporter.report(f"[coordinator] going on with {left.name}; left are {', '.join(left.left)}")
        coordinator.resume(left.name, plan)
    else:
        _confirm(plan, node, is_asked=not any(map(request.flags.switch, ("yes", "force"))))
        coordinator.begin(command, plan)


def _version(request: WorkflowRequest) -> str:
    if not request.argument:
        raise BadUsage(
            "the version to upgrade to is missing", hint=f"name it, such as garboard upgrade apply {DEFAULT_VERSION}"
        )
    with as_usage():
        return resolve_version(request.argument).text


def _words(flags: GivenFlags, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(_word(flags, name) for name in names if name in flags.given)


def _word(flags: GivenFlags, name: str) -> str:
    value = flags.values[name]
    if isinstance(value, bool):
        return f"--{name}={str(value).lower()}" if name in _PASSED_ON else f"--{name}"
    return f"--{name}={value if isinstance(value, str) else ','.join(flags.list(name))}"


def _skips(flags: GivenFlags, known: frozenset[str] | None = None) -> tuple[str, ...]:
    """Return the phases that are left out, as far as a node has them."""
    names = [each for each in flags.list("skip-phases") if known is None or each in known]
    return (f"--skip-phases={','.join(names)}",) if names else ()


def _with_flags(plan: ClusterPlan, flags: tuple[str, ...]) -> ClusterPlan:
    return ClusterPlan(
        tuple(replace(each, words=(*each.words, *flags)) for each in plan.parts if isinstance(each, NodePart))
    )


def _shown(plan: ClusterPlan, output: OutputFormat) -> str:
    if output == "text":
        return cluster_plan_text(plan)
    document: Json = {"parts": list(_parts(plan))}
    return write_yaml(document) if output == "yaml" else json.dumps(document, indent=2) + "\n"


def _parts(plan: ClusterPlan) -> Iterator[Json]:
    for each in plan.parts:
        if isinstance(each, NodePart):
            yield {"node": each.node, "command": ["garboard", *each.words]}


def _confirm(plan: ClusterPlan, node: LocalNode, *, is_asked: bool) -> None:
    node.reporter.report(cluster_plan_text(plan).rstrip("\n"))
    if not is_asked:
        return
    answer = node.reporter.ask("[upgrade] Are you sure you want to proceed? [y/N]: ")
    if answer.strip().lower() not in ("y", "yes"):
        raise GarboardError("the upgrade was not confirmed", hint="nothing was changed; --yes does not ask")
