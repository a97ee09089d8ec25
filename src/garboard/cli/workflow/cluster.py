"""The cluster that a command puts objects into, connected to when it is first needed."""

import time
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

from garboard.documents import Json
from garboard.engine import DeleteObject, PatchObject, PutObject
from garboard.errors import GarboardError, NotReady
from garboard.host.node_machine import NodeMachine
from garboard.manifests.uploaded import CLUSTER_ADMINS, cluster_admins_binding
from garboard.phases.init.context import ADMIN_CONF
from garboard.phases.putting import put

if TYPE_CHECKING:
    from garboard.kube import Access, KubeClient

_RIGHTS_WITHIN_S, _RIGHTS_INTERVAL_S = 10.0, 0.1
_SUPER_ADMIN_CONF = "/etc/kubernetes/super-admin.conf"
KUBELET_CONF = "/etc/kubernetes/kubelet.conf"
# Until the kubelet has a certificate of its own, the node is to the cluster who it was when it joined.
_STAND_INS = {KUBELET_CONF: "/etc/kubernetes/bootstrap-kubelet.conf"}


class NodeCluster:
    """What a kubeconfig of this machine leads to.

    With admin.conf, the default, the local API server is asked, and its user gets the rights that a new cluster has
    not given it yet, through super-admin.conf: both as kubeadm does it.
    """

    def __init__(self, machine: NodeMachine, kubeconfig: str, local_server: str) -> None:
        self.machine = machine
        self.kubeconfig = kubeconfig
        self.local_server = local_server
        self._asked: dict[str, KubeClient] = {}

    def find(self, kind: str, namespace: str, name: str) -> dict[str, Json] | None:
        return self._reader.find(kind, namespace, name)

    def labelled(self, kind: str, namespace: str, selector: str) -> tuple[dict[str, Json], ...]:
        return self._reader.labelled(kind, namespace, selector)

    def list_all(self, kind: str) -> tuple[dict[str, Json], ...]:
        return self._reader.list_all(kind)

    def get_text(self, server: str, path: str) -> tuple[int, str, str]:
        """Return what a path of that very server answers, such as /livez, to the user of the kubeconfig."""
        if server not in self._asked:
            self._asked[server] = self._open(self.kubeconfig, server)
        return self._asked[server].get_text(path)

    def put(self, action: PutObject) -> None:
        self._writer.put(action)

    def patch(self, action: PatchObject) -> None:
        self._writer.patch(action)

    def delete(self, action: DeleteObject) -> None:
        self._writer.delete(action)

    def connect_shared(self) -> "KubeClient":
        """Open the server that the kubeconfig itself names: the one of the whole cluster, not of this node."""
        from garboard.kube import KubeClient, read_access

        data = self.machine.read(self.kubeconfig)
        if data is None:
            raise NotReady(f"{self.kubeconfig} does not exist", hint="run the phase that makes it first")
        return KubeClient(read_access(data, self.kubeconfig, self.machine.read))

    def check(self) -> None:
        """Refuse a kubeconfig that cannot be used."""
        self._open(self.kubeconfig).close()

    @property
    def _is_default(self) -> bool:
        return self.kubeconfig == ADMIN_CONF

    @cached_property
    def _reader(self) -> "KubeClient":
        # The user of admin.conf may have no rights yet, and reading must not give any.
        has_super_admin = self._is_default and self.machine.read(_SUPER_ADMIN_CONF) is not None
        return self._open(_SUPER_ADMIN_CONF if has_super_admin else self.kubeconfig)

    @cached_property
    def _writer(self) -> "KubeClient":
        client = self._open(self.kubeconfig)
        if self._is_default:
            self._ensure_admin(client)
        return client

    def _ensure_admin(self, client: "KubeClient") -> None:
        from garboard.kube import Forbidden, ObjectExists

        action = put(cluster_admins_binding())
        with suppress(ObjectExists):
            try:
                client.create(action)
            except Forbidden as error:
                if self.machine.read(_SUPER_ADMIN_CONF) is None:
                    raise NotReady(
                        f"ClusterRoleBinding {CLUSTER_ADMINS} is missing, and so is {_SUPER_ADMIN_CONF} to make it",
                        hint="garboard init phase kubeconfig super-admin",
                    ) from error
                with self._open(_SUPER_ADMIN_CONF) as super_admin:
                    super_admin.create(action)
                self._await_rights(client)

    def _await_rights(self, client: "KubeClient") -> None:
        """Wait until the API server has taken notice of the binding: it does so a moment after it has stored it."""
        from garboard.kube import Forbidden

        give_up_at = time.monotonic() + _RIGHTS_WITHIN_S
        while time.monotonic() < give_up_at:
            with suppress(Forbidden):
                client.find("ClusterRoleBinding", "", CLUSTER_ADMINS)
                return
            time.sleep(_RIGHTS_INTERVAL_S)

    def _open(self, path: str, server: str | None = None) -> "KubeClient":
        # Most runs talk to no cluster, and the modules of HTTP and TLS take long to import.
        from garboard.kube import KubeClient

        server = server or (self.local_server if self._is_default else None)
        try:
            return KubeClient(self._access(path, server))
        except GarboardError:
            # A kubelet writes its kubeconfig before it has the certificate that this names.
            stand_in = _STAND_INS.get(path)
            if stand_in is None or self.machine.read(stand_in) is None:
                raise
            return KubeClient(self._access(stand_in, server))

    def _access(self, path: str, server: str | None) -> "Access":
        from garboard.kube import read_access

        data = self.machine.read(path)
        if data is None:
            raise NotReady(
                f"{path} does not exist",
                hint="name the kubeconfig of an administrator with --kubeconfig",
                error_class="bad-kubeconfig",
            )
        return read_access(data, path, self.machine.read, server=server)
