"""The part of a change on this node, as one run that is taken back as a whole if a step of it fails."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

from garboard.change.configuration import read_configuration
from garboard.change.engine_plan import replaced_pods
from garboard.change.outcomes import ChangeInProgress, ChangeNeedsHelp, ChangeRolledBack
from garboard.change.plan import NodeChange
from garboard.change.snapshot import ClusterSnapshot
from garboard.engine import Plan, Step, with_preconditions
from garboard.errors import BadUsage, GarboardError
from garboard.host.facts import MachineFacts
from garboard.host.locks import NodeLocked
from garboard.model.component import LocalEtcd
from garboard.model.paths import ADMIN_CONF, KUBELET_CONF
from garboard.node.interpreters.leases import LeaseToken
from garboard.node.interpreters.objects import NodeCluster
from garboard.node.observe import NodeInspector
from garboard.node.runs import can_journal
from garboard.node.transaction import RunOptions, RunPolicy
from garboard.node.wiring import RunSettings
from garboard.node.workflow import LocalNode, carry_out
from garboard.phases.static_pods import ETCD, plan_pulls
from garboard.phases.upgrade.context import ThisNode, observe_this_node
from garboard.values import dataclass

IMAGES_PHASE = "images"
# What these say of the Lease: somebody else is at work, or has left something half done.
_HELD = ("lease", "lease-lost", "half-changed", "coordinator-open")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedNode:
    """This node as a change finds it: what its files say, and how its cluster is reached."""

    local: LocalNode
    this: ThisNode
    kubeconfig: str

    @property
    def name(self) -> str:
        return self.this.name

    @property
    def is_control_plane(self) -> bool:
        return bool(self.this.manifests)

    @property
    def cluster(self) -> NodeCluster:
        return NodeCluster(self.local.machine, self.kubeconfig, self.local_server, report=self.local.reporter.report)

    @property
    def local_server(self) -> str:
        return f"https://{self.this.endpoint.host_port}" if self.is_control_plane else ""

    def settings(self, snapshot: ClusterSnapshot, lease: LeaseToken | None) -> RunSettings:
        """Return what the interpreters of a run need to know."""
        cluster = read_configuration(snapshot).cluster
        local = cluster.etcd if isinstance(cluster.etcd, LocalEtcd) and ETCD in self.this.manifests else None
        found = RunSettings(
            kubeconfig=self.kubeconfig,
            local_server=self.local_server,
            cri_socket=self.this.cri_socket,
            endpoint=cluster.control_plane_endpoint,
            certificates_dir=cluster.certificates_dir if local else "",
            etcd_data_dir=local.data_dir if local else "",
            node_name=self.name,
        )
        # A worker changes nothing that others share, and may not read the Lease.
        return found.under(lease if self.is_control_plane else None)


def changed_node(local: LocalNode, kubeconfig: str | None) -> ChangedNode:
    """Look at this machine, which has to be a node of the cluster."""
    this = observe_this_node(local.machine, MachineFacts().cri_sockets())
    found = kubeconfig or (ADMIN_CONF if this.manifests else KUBELET_CONF)
    return ChangedNode(local=local, this=this, kubeconfig=found)


@contextmanager
def reserved_for_change(local: LocalNode, command: str) -> Iterator[None]:
    """Hold the node lock; whoever is at work on this node makes a change wait or be refused."""
    if not can_journal():
        raise BadUsage(f"only root can {command.removeprefix('change ')} a change on this node", hint="run it as root")
    try:
        with local.reserved(command, is_whole=True):
            yield
    except NodeLocked as error:
        raise ChangeInProgress(error.message, hint=error.hint or "garboard status says who is at work") from error


def with_pulls(plan: Plan, node: ChangedNode, parts: tuple[NodeChange, ...]) -> Plan:
    """Return a plan that first pulls the images of new static pods, which disturbs nobody."""
    pods = [pod for part in parts for pod in replaced_pods(part)]
    inspector = NodeInspector(node.local.machine.manager)
    pulls = plan_pulls(pods, lambda image: inspector.has_image(node.this.cri_socket, image))
    steps: list[Step] = [replace(each, phase=IMAGES_PHASE, node=node.name) for each in pulls]
    return replace(plan, steps=(*steps, *plan.steps))


def prepared(plan: Plan, node: ChangedNode, parts: tuple[NodeChange, ...]) -> Plan:
    """Return a plan as it is carried out: images first, and each file as it was when this was planned."""
    _, machine = node.local.observed()
    return with_preconditions(with_pulls(plan, node, parts), machine.digest)


def carry_out_on_node(
    plan: Plan, node: ChangedNode, settings: RunSettings, options: RunOptions, cluster: NodeCluster | None = None
) -> None:
    """Carry out the plan of this node, under its lock; how it failed is told by the exit code of the error."""
    known = {each.folder.name for each in node.local.runs.all()}
    try:
        carry_out(plan, node.local, settings, options, cluster)
    except GarboardError as error:
        raise _outcome(error, node.local, known) from error


def run_options(command: str) -> RunOptions:
    """Return how the run of a change is carried out: one step that fails takes all of it back."""
    return RunOptions(
        command=command,
        policy=RunPolicy(undoes_on_failure=True),
        undoes_on_failure=True,
    )


def _outcome(error: GarboardError, local: LocalNode, known: set[str]) -> GarboardError:
    """Return how a run ended that has failed; one that did not begin is told as it is."""
    if error.error_class in _HELD:
        return ChangeInProgress(error.message, hint=error.hint)
    begun = False
    with suppress(GarboardError):
        begun = any(each.folder.name not in known for each in local.runs.all())
    if not begun:
        return error
    if local.runs.open() or local.runs.damaged():
        return ChangeNeedsHelp(error.message, hint=error.hint)
    return ChangeRolledBack(error.message, hint=error.hint)
