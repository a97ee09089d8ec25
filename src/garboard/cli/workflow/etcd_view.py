"""etcd as a reset sees it before it plans: asked where its Pods say, or where the manifest of this machine says."""

from contextlib import suppress

from garboard.cli.workflow.cluster import NodeCluster
from garboard.cli.workflow.membership import CREDENTIALS
from garboard.errors import GarboardError, NotReady
from garboard.host.node_machine import NodeMachine
from garboard.model.go_paths import join_path
from garboard.phases.reset.member import SeenMember


class NodeEtcd:
    """Reads the members of etcd with the client certificate of this node."""

    def __init__(self, machine: NodeMachine, cluster: NodeCluster, certificates_dir: str) -> None:
        self.machine = machine
        self.cluster = cluster
        self.certificates_dir = certificates_dir

    def members(self, client_urls: tuple[str, ...]) -> tuple[SeenMember, ...]:
        from garboard.etcd import EtcdAccess, EtcdClient

        ca, certificate, key = (self._file(name) for name in CREDENTIALS)
        endpoints = dict.fromkeys((*client_urls, *self._announced()))
        client = EtcdClient(tuple(endpoints), EtcdAccess(ca=ca, certificate=certificate, key=key))
        return tuple(
            SeenMember(each.name, each.peer_urls, each.client_urls, each.is_learner) for each in client.members()
        )

    def _announced(self) -> tuple[str, ...]:
        """Return where the Pods of etcd say it is; nothing if the API server cannot be asked."""
        from garboard.etcd import find_endpoints

        with suppress(GarboardError), self.cluster.connect_shared() as shared:
            return find_endpoints(shared, timeout_s=0.0)
        return ()

    def _file(self, name: str) -> bytes:
        path = join_path(self.certificates_dir, name)
        data = self.machine.read(path)
        if data is None:
            raise NotReady(f"there is no {path}, so etcd cannot be asked", hint="name the folder with --cert-dir")
        return data
