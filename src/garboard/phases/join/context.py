"""What the phases of join plan from: the cluster that was found, and the node as it was before anything changed."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from posixpath import isabs
from typing import Self

from garboard.config import ComponentConfigs
from garboard.engine import Step
from garboard.manifests import NodeHost
from garboard.model.cluster import ClusterConfiguration
from garboard.model.go_paths import join_path
from garboard.model.lifecycle import InitConfiguration, JoinConfiguration
from garboard.model.node import ApiEndpoint
from garboard.phases.init.context import InitContext, MachineView, ObservedCredentials
from garboard.phases.join.cluster import JoinedCluster
from garboard.phases.join.discovery import Discovered
from garboard.phases.patching import NodePatches
from garboard.pki.files import Folder, NewFile
from garboard.values import dataclass

KUBERNETES_DIR = "/etc/kubernetes"


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinContext:
    """A node that joins. `node` is what a phase of init would plan from on it: the cluster's configuration, this node's
    registration and endpoint, and what is on the machine, with the shared certificates as if they were there already.

    `cluster` and `discovered` are None where only phases run that need no cluster.
    """

    config: JoinConfiguration
    node: InitContext
    cluster: JoinedCluster | None = None
    discovered: Discovered | None = None
    is_whole: bool = False  # all phases run, so the end of the last one is the end of join

    @property
    def node_name(self) -> str:
        return self.node.node_name

    @property
    def is_kubelet_local_mode(self) -> bool:
        return self.node.config.cluster.is_kubelet_local_mode

    @property
    def kubelet_server(self) -> str:
        """Whom the kubelet asks for its certificate: the API server beside it, if there is one and local mode is on."""
        if self.config.control_plane is not None and self.is_kubelet_local_mode:
            return f"https://{self.config.control_plane.local_api_endpoint.host_port}"
        return self.discovered.server if self.discovered else ""

    @property
    def joined(self) -> JoinedCluster:
        assert self.cluster is not None, "phases that need the cluster are planned after it was found"
        return self.cluster

    @property
    def found(self) -> Discovered:
        assert self.discovered is not None, "phases that need the cluster are planned after it was found"
        return self.discovered

    def after(self, steps: tuple[Step, ...]) -> Self:
        return replace(self, node=self.node.after(steps))


def observe_join(
    config: JoinConfiguration,
    *,
    host: NodeHost,
    machine: MachineView,
    patches: NodePatches,
    now: datetime,
    cluster: JoinedCluster | None = None,
    discovered: Discovered | None = None,
) -> JoinContext:
    """Look at the machine with the eyes of a cluster that was found, or of a default one."""
    configuration = cluster.configuration if cluster else ClusterConfiguration()
    control_plane = config.control_plane
    # A worker has none, and need not load what reads them.
    credentials = ObservedCredentials()
    if control_plane is not None:
        credentials = _credentials(configuration, machine, cluster.shared if cluster else (), now)
    node = InitContext(
        config=InitConfiguration(
            cluster=configuration,
            bootstrap_tokens=(),
            node_registration=config.node_registration,
            local_api_endpoint=control_plane.local_api_endpoint if control_plane else ApiEndpoint(),
            patches_directory=config.patches_directory,
            timeouts=config.timeouts,
        ),
        components=ComponentConfigs(kubelet=cluster.kubelet) if cluster else ComponentConfigs(),
        host=replace(host, is_external_ca=credentials.is_external_ca),
        machine=machine,
        found=credentials,
        patches=patches,
        kubeconfig_dir=KUBERNETES_DIR,
        now=now,
    )
    return JoinContext(config=config, node=node, cluster=cluster, discovered=discovered)


def _credentials(
    configuration: ClusterConfiguration, machine: MachineView, shared: tuple[NewFile, ...], now: datetime
) -> ObservedCredentials:
    from garboard.phases.init.observing import observe_credentials

    folder = _WithShared(machine.folder(configuration.certificates_dir), {each.name: each.data for each in shared})
    return observe_credentials(folder, machine.folder(KUBERNETES_DIR), now)


@dataclass(frozen=True, slots=True)
class _WithShared:
    """The certificates' folder as it will be once the shared files have been written."""

    below: Folder
    shared: Mapping[str, bytes]

    def read(self, name: str) -> bytes | None:
        return self.shared[name] if name in self.shared else self.below.read(name)

    def write(self, name: str, data: bytes, *, new_mode: int) -> None:
        raise AssertionError("planning writes nothing")

    def path_of(self, name: str) -> str:
        return self.below.path_of(name)


def shared_path(name: str, certificates_dir: str) -> str:
    """Return where a shared file belongs; those of an external etcd say that themselves."""
    return name if isabs(name) else join_path(certificates_dir, name)
