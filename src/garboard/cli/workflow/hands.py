"""Who carries out a plan on this machine, and who looks before; the same for a run, its resumption and its undoing."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict, fields
from datetime import datetime
from typing import TYPE_CHECKING, Self

from garboard.cli.workflow.cluster import NodeCluster
from garboard.cli.workflow.runtime import NodeRuntime
from garboard.cli.workflow.telling import FileSealer, Screen, tell
from garboard.cli.workflow.world import NodeWorld, watcher
from garboard.engine import AwaitGate, Eyes, Hands, Issue, PatchObject, Plan, PutObject, Watcher, paths_written
from garboard.host.node_machine import NodeMachine
from garboard.phases.init.context import ADMIN_CONF
from garboard.phases.issuing import KeyRequest
from garboard.phases.waiting import KubeletBootstrapped, gather_component
from garboard.values import dataclass

if TYPE_CHECKING:  # most of what makes a control plane is nothing to a worker
    from garboard.cli.workflow.membership import NodeMembership
    from garboard.phases.issuer import PkiIssuer
    from garboard.pki.keys import KeySource


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """What the hands need to know besides the plan. A journal keeps it, so it is texts, and none of them a secret."""

    kubeconfig: str = ADMIN_CONF
    local_server: str = ""
    cri_socket: str = ""
    endpoint: str = ""  # the cluster's shared one, whose name evidence resolves
    certificates_dir: str = ""  # of etcd's client; not empty if the run may change the members of etcd
    etcd_data_dir: str = ""
    etcd_endpoints: str = ""  # where etcd is, separated by commas; empty to ask the cluster

    def texts(self) -> dict[str, str]:
        return asdict(self)

    @classmethod
    def of_texts(cls, texts: Mapping[str, str]) -> Self:
        known = {each.name for each in fields(cls)}
        return cls(**{name: text for name, text in texts.items() if name in known})


@dataclass(frozen=True, slots=True)
class Crew:
    """The hands of a run, and the eyes that look before each step."""

    hands: Hands
    eyes: Eyes
    cluster: NodeCluster
    world: NodeWorld
    membership: "NodeMembership | None" = None

    def require_majority(self, peer_urls: Iterable[str]) -> None:
        """Refuse to take members away while etcd cannot decide that."""
        for each in peer_urls:
            assert self.membership is not None, "who added members can remove them"
            self.membership.require_majority(each)

    def check(self, plan: Plan) -> None:
        """Refuse a kubeconfig that cannot be used, if neither a step of the plan nor the kubelet meanwhile makes it."""
        path = self.cluster.kubeconfig
        if path not in paths_written(plan.steps) and not _awaits_kubelet_conf(plan, path) and _puts_objects(plan):
            self.cluster.check()


@contextmanager
def crew_for(
    plan: Plan,
    machine: NodeMachine,
    settings: RunSettings,
    started_at: datetime,
    cluster: NodeCluster | None = None,
    keys: "KeySource | None" = None,
) -> Iterator[Crew]:
    """Give everybody their tools; `started_at` is when certificates begin, also if the run is resumed later.

    `keys` are those that somebody has begun to make already.
    """
    reached = cluster or NodeCluster(machine, settings.kubeconfig, settings.local_server)
    with ExitStack() as stack:
        world = NodeWorld(machine, reached, settings.cri_socket)
        membership = stack.enter_context(_membership(settings, reached, world)) if settings.certificates_dir else None
        waits: Watcher = watcher(world, endpoint=settings.endpoint)
        hands = Hands(
            files=machine,
            services=machine.manager,
            issuer=_issuer(plan, machine, started_at, keys, stack),
            objects=reached,
            members=membership,
            turns=membership,
            runtime=NodeRuntime(settings.cri_socket, tell),
            watcher=membership.watching(waits) if membership else waits,
            narrator=Screen(machine),
            sealer=FileSealer(),
        )
        eyes = Eyes(files=machine, services=machine.manager, objects=reached, members=membership)
        yield Crew(hands, eyes, reached, world, membership)


def _issuer(
    plan: Plan, machine: NodeMachine, started_at: datetime, keys: "KeySource | None", stack: ExitStack
) -> "PkiIssuer | None":
    """Return who issues what the plan asks for; nobody if it asks for nothing."""
    requests = [step.action.request for step in plan.steps if isinstance(step.action, Issue)]
    if not requests:
        return None
    from garboard.phases.issuer import PkiIssuer
    from garboard.pki.keys import PooledKeys

    algorithms = (each.inputs.key_algorithm for each in requests if isinstance(each, KeyRequest))
    return PkiIssuer(machine.folder, keys or stack.enter_context(PooledKeys(algorithms)), started_at)


def _membership(
    settings: RunSettings, cluster: NodeCluster, world: NodeWorld
) -> "AbstractContextManager[NodeMembership]":
    from garboard.cli.workflow.membership import EtcdPlace, NodeMembership

    place = EtcdPlace(
        certificates_dir=settings.certificates_dir,
        data_dir=settings.etcd_data_dir,
        endpoints=tuple(filter(None, settings.etcd_endpoints.split(","))),
    )
    return NodeMembership(
        world.machine, place, cluster.connect_shared, tell, lambda: gather_component("etcd", world)
    ).opened()


def _awaits_kubelet_conf(plan: Plan, path: str) -> bool:
    gates = (step.action.gate for step in plan.steps if isinstance(step.action, AwaitGate))
    return any(isinstance(gate, KubeletBootstrapped) and gate.kubeconfig == path for gate in gates)


def _puts_objects(plan: Plan) -> bool:
    return any(isinstance(step.action, PutObject | PatchObject) for step in plan.steps)
