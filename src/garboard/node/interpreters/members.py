"""The members of etcd, changed by a control-plane node, and read by a reset before it plans."""

import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from garboard.documents import Json
from garboard.engine import (
    MEMBER_ID,
    AddMember,
    Interpreters,
    Outcomes,
    Probe,
    PromoteMember,
    RemoveMember,
    StepContext,
)
from garboard.errors import ClusterUnreachable, GarboardError, NotReady, StalePlan
from garboard.host.node_machine import NodeMachine
from garboard.host.web import probe_as
from garboard.lazy import lazy_module
from garboard.model.addresses import join_host_port
from garboard.model.go import join_path
from garboard.model.paths import DEFAULT_CERTIFICATES_DIR
from garboard.model.version import numbers_of
from garboard.node.interpreters.leases import NodeLeases
from garboard.node.interpreters.objects import NodeCluster
from garboard.phases.control_plane_lease import MEMBER
from garboard.retry import CLOCK, Clock, Pauses, retry

if TYPE_CHECKING:
    from garboard import etcd, kube
    from garboard.manifests import etcd as manifest
    from garboard.phases.node import etcd_member
else:
    etcd = lazy_module("garboard.etcd")
    manifest = lazy_module("garboard.manifests.etcd")
    etcd_member = lazy_module("garboard.phases.node.etcd_member")  # of no use to a join

_ENDPOINTS_WITHIN_S, _ENDPOINTS_PAUSES = 120.0, Pauses.every(0.5)
_MAJORITY_WITHIN_S = 15.0
_ANNOTATION = "kubeadm.kubernetes.io/etcd.advertise-client-urls"
_SELECTOR = "component=etcd,tier=control-plane"
# Below the folder of certificates: the authority of etcd, and the client certificate that every member has.
_CREDENTIALS = ("etcd/ca.crt", "etcd/healthcheck-client.crt", "etcd/healthcheck-client.key")


class MemberControl(Protocol):
    """The members of etcd."""

    def add(self, action: AddMember) -> Outcomes:
        """Add a learner, or find the one that was added; return the outcomes of the action."""
        ...

    def promote(self, action: PromoteMember) -> None: ...

    def remove(self, action: RemoveMember) -> None:
        """Remove a member and verify that it is gone."""
        ...


@dataclass(frozen=True, slots=True)
class MemberInterpreter:
    members: MemberControl

    def add_to(self, interpreters: Interpreters) -> None:
        interpreters.add(AddMember, self.add).add(PromoteMember, self.promote).add(RemoveMember, self.remove)

    def add(self, action: AddMember, run: StepContext) -> Outcomes:
        outcomes = self.members.add(action)
        if member_id := outcomes.get(MEMBER_ID):
            run.note({MEMBER_ID: member_id})  # on the disk at once, which the end of a step is not
        return outcomes

    def promote(self, action: PromoteMember, _run: StepContext) -> None:
        self.members.promote(action)

    def remove(self, action: RemoveMember, _run: StepContext) -> None:
        self.members.remove(action)


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdPaths:
    """Where this node keeps what it needs to talk to etcd, and what its member stores."""

    certificates_dir: str = DEFAULT_CERTIFICATES_DIR
    data_dir: str = "/var/lib/etcd"
    endpoints: tuple[str, ...] = ()  # where etcd is; the cluster is asked if it is not known


class EtcdMembership:
    """Changes the members of etcd, under a Lease; connected when first needed.

    `connect` connects to an API server of the cluster that is joined, because that of this node has no etcd yet.
    `evidence` returns lines about this node's etcd for an error, `leases` is told when what a dead join left is gone.
    """

    def __init__(
        self,
        machine: NodeMachine,
        place: EtcdPaths,
        connect: "Callable[[], kube.KubeClient]",
        report: Callable[[str], None],
        evidence: Callable[[], tuple[str, ...]],
        leases: NodeLeases,
    ) -> None:
        self.machine = machine
        self.place = place
        self.connect = connect
        self.report = report
        self.evidence = evidence
        self.leases = leases

    def add(self, action: AddMember) -> Outcomes:
        added = self._members.add(action.name, action.peer_url)
        return {action.outcome: added.initial_cluster, MEMBER_ID: added.member.hex_id}

    def promote(self, action: PromoteMember) -> None:
        try:
            self._members.promote(action.peer_url, action.timeout_s)
        except etcd.MembershipRefused as error:
            lines = "".join(f"\n  {line}" for line in self.evidence())
            raise etcd.MembershipRefused(
                f"{error.message}{lines}", hint=error.hint, error_class=error.error_class
            ) from error

    def remove(self, action: RemoveMember) -> None:
        self._members.remove(action.peer_url, action.member_id)

    def save_snapshot(self, client_url: str, write: Callable[[bytes], object]) -> str:
        """Pass the database of a member to `write`; return its digest, which is verified."""
        return etcd.save_snapshot(etcd.EtcdClient((client_url,), self._access()), client_url, write)

    def move_leader(self, peer_url: str, timeout_s: float) -> None:
        """Have another member lead."""
        etcd.Leadership(self._members.client, peer_url, self.report).move(timeout_s)

    def is_serving(self, client_url: str) -> bool:
        """Say whether the member of this node answers its clients."""
        return etcd.EtcdClient((client_url,), self._access()).is_serving(client_url)

    def is_learner(self, peer_url: str) -> bool:
        """Say whether the members that vote know the one with this peer URL as a learner."""
        members = self._members.client.sync()
        return any(peer_url in each.peer_urls and each.is_learner for each in members)

    def lines(self) -> tuple[str, ...]:
        """Return a line for each member: its id, name, URLs, and whether it is a learner."""
        found = self._members.client.members()
        return tuple(
            f"{each.hex_id} {each.name} {','.join(each.peer_urls)} {','.join(each.client_urls)} {each.is_learner}"
            for each in found
        )

    def has(self, peer_url: str) -> bool:
        """Say whether etcd has a member with this peer URL."""
        return any(peer_url in each.peer_urls for each in self._members.client.members())

    def majority_probe(self, without: str = "") -> Probe:
        """Find etcd, and return the probe that says why it has no majority of healthy members, or none without one."""
        client = self._members.client

        def probe() -> str | None:
            try:
                health = etcd.check_health(client, client.members())
            except GarboardError as error:
                return error.message
            is_well = health.spares(without) if without else health.has_quorum
            return None if is_well else health.unhealthy() or "it has no voting member"

        return probe

    def caught_up_probe(self, peer_url: str) -> Probe:
        """Find etcd, and return the probe that says what a member has not caught up with."""
        member = etcd.CaughtUp(self._members.client, peer_url)
        return member.problem

    def cluster_version(self) -> str:
        """Return the highest cluster version that the data of this node's member and the other members tell.

        The member of this node may have stopped. If there are others, one of them has to answer: the last one to hear
        of a new version could be the one that stopped.
        """
        path = join_path(self.place.data_dir, etcd.DATABASE)

        def read_at(offset: int, count: int) -> bytes:
            return self.machine.read_part(path, offset, count)

        members = etcd.stored_members(read_at)
        urls = [url for each in members for url in each.client_urls]
        access = self._access()
        told = [version for url in urls if (version := _told_cluster_version(url, access))]
        if len(members) > 1 and not told:
            raise etcd.EtcdUnreachable(
                f"no member of etcd tells its cluster version, of {', '.join(urls)}",
                hint="bring one of them back first: what version etcd can go back to depends on it",
            )
        return max((*told, etcd.stored_cluster_version(read_at)), key=numbers_of)

    def require_majority(self, peer_url: str) -> None:
        """Refuse if etcd has no quorum; the member of this node, known by its peer URL, is asked as well."""
        endpoints = dict.fromkeys((_client_url(peer_url), *self.place.endpoints, *_announced(self.connect)))
        etcd.await_quorum(etcd.EtcdClient(tuple(endpoints), self._access()), timeout_s=_MAJORITY_WITHIN_S)

    def refuse_other_voters(self, client_urls: tuple[str, ...]) -> None:
        """Refuse to take the last voting member away if others vote by now; an etcd that is silent is gone already."""
        try:
            members = etcd.EtcdClient(client_urls, self._access()).members()
        except GarboardError:
            return
        voters = [each.name or each.peer_urls[0] for each in members if not each.is_learner]
        if len(voters) > 1:
            raise StalePlan(
                "the plan is stale: this was the last voting member of etcd, and there are others by now: "
                f"{', '.join(voters)}",
                hint="nothing was changed; garboard reset plans from what is there now, and asks",
            )

    @cached_property
    def _members(self) -> "etcd.EtcdMembers":
        access = self._access()
        endpoints = self.place.endpoints
        if not endpoints:
            with self.connect() as cluster:
                endpoints = find_endpoints(cluster, timeout_s=_ENDPOINTS_WITHIN_S)
        data_folder = join_path(self.place.data_dir, "member")
        return etcd.EtcdMembers(
            etcd.EtcdClient(endpoints, access),
            self.report,
            has_data=lambda: self.machine.has_folder(data_folder),
            abandoned=lambda: self.leases.left_behind(MEMBER),
            forget_abandoned=lambda: self.leases.forget_left_behind(MEMBER),
            confirm=self.leases.confirm,
        )

    def _access(self) -> "etcd.EtcdAccess":
        return _read_access(self.machine, self.place.certificates_dir, hint="run the phase that makes it first")


def _told_cluster_version(client_url: str, access: "etcd.EtcdAccess") -> str:
    """Return the cluster version that a member answers with; empty if it does not."""
    with suppress(GarboardError, ValueError, KeyError, TypeError):
        answer = probe_as(f"{client_url}/version", ca=access.ca, credential=access.certificate + b"\n" + access.key)
        return str(json.loads(answer.text)["etcdcluster"])
    return ""


class EtcdReader:
    """Reads the members of etcd with the client certificate of this node."""

    def __init__(self, machine: NodeMachine, cluster: NodeCluster, certificates_dir: str) -> None:
        self.machine = machine
        self.cluster = cluster
        self.certificates_dir = certificates_dir

    def members(self, client_urls: tuple[str, ...]) -> "tuple[etcd_member.ObservedMember, ...]":
        """Return the members, from the given client URLs and those that the annotations of etcd's Pods name."""
        access = _read_access(self.machine, self.certificates_dir, hint="name the folder with --cert-dir")
        endpoints = dict.fromkeys((*client_urls, *_announced(self.cluster.connect_shared)))
        return _observed(etcd.EtcdClient(tuple(endpoints), access).members())

    def is_serving(self, client_url: str) -> bool:
        """Say whether the member at this URL answers its clients."""
        access = _read_access(self.machine, self.certificates_dir, hint="name the folder with --cert-dir")
        return etcd.EtcdClient((client_url,), access).is_serving(client_url)

    def own_id(self, client_urls: tuple[str, ...]) -> str:
        """Return the id of the member that answers at these URLs; empty if none does."""
        for url in client_urls:
            with suppress(GarboardError):
                access = _read_access(self.machine, self.certificates_dir, hint="name the folder with --cert-dir")
                return f"{etcd.EtcdClient((url,), access).status(url).member_id:x}"
        return ""

    def stored_members(self, data_dir: str) -> "tuple[etcd_member.ObservedMember, ...] | None":
        """Return the members by the database in a folder of data, or None where there is none."""
        path = join_path(data_dir, etcd.DATABASE)
        if self.machine.owner(path) is None:
            return None
        return _observed(etcd.stored_members(lambda offset, count: self.machine.read_part(path, offset, count)))


def _observed(members: "Iterable[etcd.Member]") -> "tuple[etcd_member.ObservedMember, ...]":
    return tuple(
        etcd_member.ObservedMember(each.name, each.peer_urls, each.client_urls, each.is_learner, each.hex_id)
        for each in members
    )


class PodReader(Protocol):
    """What finding the etcd endpoints needs of a cluster."""

    def labelled(self, kind: str, namespace: str, selector: str) -> tuple[dict[str, Json], ...]: ...


def find_endpoints(pods: PodReader, *, timeout_s: float, clock: Clock = CLOCK) -> tuple[str, ...]:
    """Return the client URLs of etcd, once every etcd Pod exists and has its annotation."""
    return retry(
        lambda: _announced_by(pods),
        timeout_s=timeout_s,
        pauses=_ENDPOINTS_PAUSES,
        is_passing=lambda error: isinstance(error, ClusterUnreachable),
        clock=clock,
    )


def _announced_by(pods: PodReader) -> tuple[str, ...]:
    if found := endpoints_of_pods(pods.labelled("Pod", "kube-system", _SELECTOR)):
        return found
    raise etcd.EtcdUnreachable(
        f"no Pod with the labels {_SELECTOR} in kube-system says where etcd is (annotation {_ANNOTATION})",
        hint="kubectl -n kube-system get pods -l component=etcd; the kubelet of each node makes them",
    )


def endpoints_of_pods(pods: Iterable[dict[str, Json]]) -> tuple[str, ...] | None:
    """Return the client URLs that the Pods of etcd announce; None unless every one of them does."""
    found = [_annotated(pod) for pod in pods]
    if not found or not all(found):
        return None
    return tuple(dict.fromkeys(url for urls in found for url in urls.split(",")))


def _annotated(pod: dict[str, Json]) -> str:
    metadata = pod.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    value = annotations.get(_ANNOTATION) if isinstance(annotations, dict) else None
    return value if isinstance(value, str) else ""


def _client_url(peer_url: str) -> str:
    """Return the client URL of the member with this peer URL, as kubeadm sets it up."""
    return f"https://{join_host_port(urlsplit(peer_url).hostname or '', manifest.CLIENT_PORT)}"


def _announced(connect: "Callable[[], kube.KubeClient]") -> tuple[str, ...]:
    """Return the client URLs in the annotations of etcd's Pods; none if the API server does not answer."""
    with suppress(GarboardError), connect() as cluster:
        return find_endpoints(cluster, timeout_s=0.0)
    return ()


def _read_access(machine: NodeMachine, certificates_dir: str, *, hint: str) -> "etcd.EtcdAccess":
    """Return the credentials of this node for etcd; a missing certificate is refused with the hint."""

    def read(name: str) -> bytes:
        path = join_path(certificates_dir, name)
        data = machine.read(path)
        if data is None:
            raise NotReady(f"there is no {path}, so etcd cannot be asked", hint=hint)
        return data

    ca, certificate, key = (read(name) for name in _CREDENTIALS)
    return etcd.EtcdAccess(ca=ca, certificate=certificate, key=key)
