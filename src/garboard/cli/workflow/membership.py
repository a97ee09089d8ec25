"""The members of etcd and the turns at changing them, from a control-plane node that is about to be one."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from garboard.engine import AddMember, EndTurn, Gate, PromoteMember, RemoveMember, TakeTurn, Watcher
from garboard.errors import GarboardError, NotReady
from garboard.host.node_machine import NodeMachine
from garboard.manifests.etcd import CLIENT_PORT
from garboard.model.addresses import join_host_port
from garboard.model.go_paths import join_path
from garboard.phases.waiting import EtcdHealthy

if TYPE_CHECKING:
    from garboard.etcd import EtcdAccess, EtcdMembers
    from garboard.kube import KubeClient, LeaseTurns

_ENDPOINTS_WITHIN_S = 120.0
_MAJORITY_WITHIN_S = 15.0
# Below the folder of certificates: the authority of etcd, and the client certificate that every member has.
CREDENTIALS = ("etcd/ca.crt", "etcd/healthcheck-client.crt", "etcd/healthcheck-client.key")


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdPlace:
    """Where this node keeps what it needs to talk to etcd, and what its member stores."""

    certificates_dir: str = "/etc/kubernetes/pki"
    data_dir: str = "/var/lib/etcd"
    endpoints: tuple[str, ...] = ()  # where etcd is; the cluster is asked if it is not known


def client_url(peer_url: str) -> str:
    """Return where the member with this peer URL serves its clients, as kubeadm sets it up."""
    return f"https://{join_host_port(urlsplit(peer_url).hostname or '', CLIENT_PORT)}"


class NodeMembership:
    """Changes the members of etcd, and takes turns at that; connected when first needed, closed by `opened`.

    `connect` leads to the API server of the cluster that is joined: the one of this node has no etcd yet. `evidence`
    tells how the etcd of this node fares.
    """

    def __init__(
        self,
        machine: NodeMachine,
        place: EtcdPlace,
        connect: "Callable[[], KubeClient]",
        report: Callable[[str], None],
        evidence: Callable[[], tuple[str, ...]],
    ) -> None:
        self.machine = machine
        self.place = place
        self.connect = connect
        self.report = report
        self.evidence = evidence

    def take(self, action: TakeTurn) -> None:
        self._turns.take(action)

    def end(self, action: EndTurn) -> None:
        self._turns.end(action)

    def add(self, action: AddMember) -> str:
        return self._members.add(action)

    def promote(self, action: PromoteMember) -> None:
        from garboard.etcd import MembershipRefused

        try:
            self._members.promote(action)
        except MembershipRefused as error:
            lines = "".join(f"\n  {line}" for line in self.evidence())
            raise MembershipRefused(
                f"{error.message}{lines}", hint=error.hint, error_class=error.error_class
            ) from error

    def remove(self, action: RemoveMember) -> None:
        self._members.remove(action)

    def has(self, peer_url: str) -> bool:
        """Say whether etcd has a member with this peer URL."""
        return any(peer_url in each.peer_urls for each in self._members.client.members())

    def watching(self, other: Watcher) -> "EtcdWatcher":
        """Return who waits for etcd as well as for all that `other` waits for."""
        return EtcdWatcher(self, other)

    def await_quorum(self, timeout_s: float) -> None:
        from garboard.etcd import await_quorum

        await_quorum(self._members.client, timeout_s=timeout_s)

    def require_majority(self, peer_url: str) -> None:
        """Refuse if etcd can decide nothing now; the member of this node, known by its peer URL, is asked as well."""
        from garboard.etcd import EtcdClient, await_quorum

        endpoints = tuple(dict.fromkeys((client_url(peer_url), *self.place.endpoints, *self._announced())))
        await_quorum(EtcdClient(endpoints, self._access()), timeout_s=_MAJORITY_WITHIN_S)

    def _announced(self) -> tuple[str, ...]:
        """Return where the Pods of etcd say it is; nothing if the API server cannot be asked, as without a majority."""
        from garboard.etcd import find_endpoints

        with suppress(GarboardError), self.connect() as cluster:
            return find_endpoints(cluster, timeout_s=0.0)
        return ()

    @contextmanager
    def opened(self) -> Iterator["NodeMembership"]:
        """Give up a turn that is still held when the run ends."""
        try:
            yield self
        finally:
            if "_turns" in vars(self):
                self._turns.__exit__(None, None, None)

    @cached_property
    def _turns(self) -> "LeaseTurns":
        from garboard.kube import LeaseTurns

        return LeaseTurns(self.connect, self.report)

    @cached_property
    def _members(self) -> "EtcdMembers":
        from garboard.etcd import EtcdClient, EtcdMembers, find_endpoints

        access = self._access()
        endpoints = self.place.endpoints
        if not endpoints:
            with self.connect() as cluster:
                endpoints = find_endpoints(cluster, timeout_s=_ENDPOINTS_WITHIN_S)
        client = EtcdClient(endpoints, access)
        has_data = join_path(self.place.data_dir, "member")
        return EtcdMembers(
            client,
            self.report,
            has_data=lambda: self.machine.has_folder(has_data),
            abandoned=lambda: self._turns.left_behind(),
        )

    def _access(self) -> "EtcdAccess":
        from garboard.etcd import EtcdAccess

        ca, certificate, key = (self._file(name) for name in CREDENTIALS)
        return EtcdAccess(ca=ca, certificate=certificate, key=key)

    def _file(self, name: str) -> bytes:
        path = join_path(self.place.certificates_dir, name)
        data = self.machine.read(path)
        if data is None:
            raise NotReady(f"there is no {path}, so etcd cannot be asked", hint="run the phase that makes it first")
        return data


@dataclass(frozen=True, slots=True)
class EtcdWatcher:
    """Waits for the health of etcd itself, and leaves every other gate to `other`."""

    membership: NodeMembership
    other: Watcher

    def wait(self, gate: Gate) -> None:
        if isinstance(gate, EtcdHealthy):
            self.membership.await_quorum(gate.timeout_s)
        else:
            self.other.wait(gate)
