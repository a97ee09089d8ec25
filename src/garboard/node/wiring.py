"""What a plan is carried out with on this machine: interpreters, observers and the node view of gates.

It is the same when a run begins, is resumed and is undone. This is where the edges are chosen.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, fields, replace
from datetime import datetime
from typing import TYPE_CHECKING, Self

from garboard.engine import AwaitGate, Interpreters, Issue, Observers, PatchObject, Plan, PutObject, Step, paths_written
from garboard.host.facts import socket_address
from garboard.host.node_machine import NodeMachine
from garboard.lazy import lazy_module
from garboard.model.paths import ADMIN_CONF
from garboard.node.interpreters import ProbingWaiter, interpreters_over
from garboard.node.interpreters.eviction import NodePods
from garboard.node.interpreters.leases import LeaseToken, NodeLeases
from garboard.node.interpreters.links import NodeLinks
from garboard.node.interpreters.machine import ReporterDisplay
from garboard.node.interpreters.objects import NodeCluster
from garboard.node.interpreters.runtime import NodeRuntime
from garboard.node.node_view import LiveNodeView
from garboard.node.reporter import Reporter
from garboard.phases.gates import KubeletBootstrapped, component_evidence
from garboard.phases.issuing import KeyRequest
from garboard.values import dataclass

if TYPE_CHECKING:
    from garboard.node.interpreters import certificates, members
    from garboard.pki import keys as key_making
    from garboard.pki import transfer
else:  # what makes a control plane, which a worker does without
    members = lazy_module("garboard.node.interpreters.members")
    certificates = lazy_module("garboard.node.interpreters.certificates")
    key_making = lazy_module("garboard.pki.keys")
    transfer = lazy_module("garboard.pki.transfer")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """What interpreters need to know besides the plan. A journal keeps it as texts, so none of it is a secret."""

    kubeconfig: str = ADMIN_CONF
    local_server: str = ""
    cri_socket: str = ""
    endpoint: str = ""  # the cluster's shared one, whose name evidence resolves
    certificates_dir: str = ""  # of etcd's client; not empty if the run may change the members of etcd
    etcd_data_dir: str = ""
    etcd_endpoints: str = ""  # where etcd is, separated by commas; empty to ask the cluster
    lease_id: str = ""  # tells this run, also when it is resumed or undone, from others on nodes of the same name
    node_name: str = ""  # the steps of a plan that name another node are refused
    lease_holder: str = ""  # who holds the Lease of the control plane for this run; empty if the run acquires it
    lease_token: str = ""  # with which `leaseTransitions`
    lone_member: str = (
        ""  # where the member of etcd answers that goes because no other one votes, as for etcd_endpoints
    )

    @property
    def lease(self) -> LeaseToken | None:
        return LeaseToken(self.lease_holder, int(self.lease_token)) if self.lease_holder else None

    def under(self, lease: LeaseToken | None) -> Self:
        """Return the settings of a run under a Lease that somebody holds for it, or under one of its own."""
        holder, token = (lease.holder, str(lease.token)) if lease else ("", "")
        return replace(self, lease_holder=holder, lease_token=token)

    def texts(self) -> dict[str, str]:
        return asdict(self)

    @classmethod
    def of_texts(cls, texts: Mapping[str, str]) -> Self:
        known = {each.name for each in fields(cls)}
        return cls(**{name: text for name, text in texts.items() if name in known})


@dataclass(frozen=True, slots=True)
class Wiring:
    """The interpreters of a run, the observers that take pre-images, and the node view of gates."""

    interpreters: Interpreters
    observers: Observers
    cluster: NodeCluster
    view: LiveNodeView
    leases: NodeLeases
    membership: "members.EtcdMembership | None" = None

    def require_majority(self, peer_urls: Iterable[str]) -> None:
        """Refuse to remove members while etcd has no quorum."""
        for each in peer_urls:
            assert self.membership is not None, "a run that added members can remove them"
            self.membership.require_majority(each)

    def refuse_other_voters(self, settings: RunSettings) -> None:
        """Refuse to go on if the run takes the last voting member of etcd away, and others vote by now."""
        if settings.lone_member and self.membership is not None:
            self.membership.refuse_other_voters(tuple(settings.lone_member.split(",")))

    def member_lines(self) -> tuple[str, ...]:
        """Return a line for each member of etcd, which differs when anything about that member does."""
        assert self.membership is not None, "a run that may ask etcd knows its certificates"
        return self.membership.lines()

    def check_before(self, step: Step) -> None:
        """Refuse to begin a step if the Lease that the run held was lost."""
        self.leases.check_before(step)

    def check(self, plan: Plan) -> None:
        """Refuse a kubeconfig that cannot be used, unless a step of the plan or the kubelet makes it in time."""
        path = self.cluster.kubeconfig
        if path not in paths_written(plan.steps) and not _awaits_kubelet_conf(plan, path) and _puts_objects(plan):
            self.cluster.check()


class AesGcmSealer:
    """Encrypts with AES-GCM, every file with a nonce of its own."""

    def seal(self, data: bytes, key: bytes) -> bytes:
        return transfer.encrypt(data, key, os.urandom(transfer.NONCE_BYTES))


@contextmanager
def wired_for(
    plan: Plan,
    machine: NodeMachine,
    settings: RunSettings,
    started_at: datetime,
    reporter: Reporter,
    cluster: NodeCluster | None = None,
    keys: "key_making.KeySource | None" = None,
) -> Iterator[Wiring]:
    """Wire what the plan needs; `started_at` is the start of new certificates, also if the run is resumed later.

    `keys` are being generated in the background already.
    """
    reached = cluster or NodeCluster(machine, settings.kubeconfig, settings.local_server, report=reporter.report)
    membership: members.EtcdMembership | None = None
    cri_socket = socket_address(settings.cri_socket)
    view = LiveNodeView(machine, reached.without_patience(), cri_socket, settings.endpoint, lambda: membership)
    runtime, links = NodeRuntime(cri_socket, reporter.report), NodeLinks()
    with ExitStack() as stack:
        leases = stack.enter_context(closing(NodeLeases(reached.connect_shared, reporter.report, settings.lease)))
        if settings.certificates_dir:
            membership = _membership(settings, reached, view, reporter, leases)
        interpreters = interpreters_over(
            files=machine,
            services=machine.manager,
            timers=machine.manager,
            unit_files=machine.manager,
            links=links,
            issuer=_issuer(plan, machine, started_at, keys, stack),
            objects=reached,
            pods=NodePods(reached),
            members=membership,
            maintenance=membership,
            is_serving=membership.is_serving if membership else None,
            is_learner=membership.is_learner if membership else None,
            leases=leases,
            lease_id=settings.lease_id,
            runtime=runtime,
            waiter=ProbingWaiter(view),
            display=ReporterDisplay(machine, reporter),
            sealer=AesGcmSealer(),
        )
        observers = _observers(machine, reached, membership, runtime, links)
        yield Wiring(interpreters, observers, reached, view, leases, membership)


def _observers(
    machine: NodeMachine,
    cluster: NodeCluster,
    membership: "members.EtcdMembership | None",
    runtime: NodeRuntime,
    links: NodeLinks,
) -> Observers:
    """Return the views that pre-images are taken from: the same edges that carry the plan out."""
    manager = machine.manager
    return Observers(
        files=machine,
        services=manager,
        objects=cluster,
        members=membership,
        runtime=runtime,
        timers=manager,
        unit_files=manager,
        links=links,
    )


def _issuer(
    plan: Plan, machine: NodeMachine, started_at: datetime, keys: "key_making.KeySource | None", stack: ExitStack
) -> "certificates.PkiIssuer | None":
    """Return the issuer of the certificates in the plan; None if it has none."""
    requests = [step.action.request for step in plan.steps if isinstance(step.action, Issue)]
    if not requests:
        return None
    algorithms = (each.key_algorithm for each in requests if isinstance(each, KeyRequest))
    source = keys or stack.enter_context(key_making.PooledKeys(algorithms))
    return certificates.PkiIssuer(machine.folder, source, started_at)


def _membership(
    settings: RunSettings, cluster: NodeCluster, view: LiveNodeView, reporter: Reporter, leases: NodeLeases
) -> "members.EtcdMembership":
    place = members.EtcdPaths(
        certificates_dir=settings.certificates_dir,
        data_dir=settings.etcd_data_dir,
        endpoints=tuple(filter(None, settings.etcd_endpoints.split(","))),
    )
    return members.EtcdMembership(
        view.machine, place, cluster.connect_shared, reporter.report, lambda: component_evidence("etcd", view), leases
    )


def _awaits_kubelet_conf(plan: Plan, path: str) -> bool:
    gates = (step.action.gate for step in plan.steps if isinstance(step.action, AwaitGate))
    return any(isinstance(gate, KubeletBootstrapped) and gate.kubeconfig == path for gate in gates)


def _puts_objects(plan: Plan) -> bool:
    return any(isinstance(step.action, PutObject | PatchObject) for step in plan.steps)
