"""A coordinator wired on this machine: its record, the Lease, the carrier, and the steps that it carries out itself."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime

from garboard.engine import ClusterPart, Executor, PlanRefused, Step, traits_of
from garboard.host.runs import RunFolders
from garboard.node.coordinator import Coordinator, CoordinatorOptions, OnCluster
from garboard.node.interpreters.leases import LeaseToken, NodeLeases
from garboard.node.interpreters.objects import NodeCluster
from garboard.node.reporter import SteadyReporter
from garboard.node.runs import plan_codec
from garboard.node.via import Carrier, Via
from garboard.node.wiring import RunSettings, Wiring, wired_for
from garboard.node.workflow import LocalNode

FOLDER = "coordinator"  # beside the runs of this machine, with a lock of its own: it tells this node to run things, too
# The API server that answered a moment ago may be that of the node which is just being changed.
_RETRY_S = 60.0


def coordinator_on(
    node: LocalNode, via: Via, settings: RunSettings, options: CoordinatorOptions | None = None
) -> Coordinator:
    """Return the coordinator of this machine; `settings` say where its cluster is, and its `node_name` who it is."""
    cluster = NodeCluster(node.machine, settings.kubeconfig, settings.local_server, report=node.reporter.report)
    return Coordinator(
        settings.node_name,
        Carrier(via, node.reporter),
        NodeLeases(cluster.connect_shared, node.reporter.report),
        RunFolders(node.runs.folders.root / FOLDER),
        plan_codec(),
        steps_on_cluster(node, settings),
        node.reporter,
        options,
    )


def steps_on_cluster(node: LocalNode, settings: RunSettings) -> OnCluster:
    """Return what carries out the steps of a cluster part from this machine, under the Lease of the coordinator.

    There is no journal: the record says that the part was begun, and all of it is given again after a kill. So a part
    must not change files of this machine, which only a run can take back.
    """

    def carry_out(part: ClusterPart, lease: LeaseToken) -> None:
        _refuse_files(part)
        # The steps are of no node; the executor would refuse those of another one.
        own, report = replace(settings.under(lease), node_name=""), SteadyReporter(node.reporter)
        with wired_for(part.plan, node.machine, own, datetime.now(UTC), report) as wiring:
            executor = Executor(
                wiring.interpreters,
                report.report,
                around=lambda step: _under_lease(wiring, step),
                retry_s=_RETRY_S,
                observers=wiring.observers,
            )
            executor.refuse(part.plan)
            executor.execute(part.plan)

    return carry_out


@contextmanager
def _under_lease(wiring: Wiring, step: Step) -> Iterator[None]:
    wiring.check_before(step)
    yield


def _refuse_files(part: ClusterPart) -> None:
    for step in part.plan.steps:
        traits = traits_of(step.action)
        if paths := (*traits.writes(step.action), *traits.changes(step.action)):
            raise PlanRefused(f"{part.name} would change {paths[0]}, which belongs to one node and not to the cluster")
