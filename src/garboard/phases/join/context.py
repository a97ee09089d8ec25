"""What the phases of join plan from: the cluster that was found, and the node as it was before anything changed."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from garboard.config import ComponentConfigs
from garboard.lazy import lazy_module
from garboard.manifests import NodeHost
from garboard.model.cluster import ClusterConfiguration
from garboard.model.lifecycle import JoinConfiguration
from garboard.model.node import ApiEndpoint
from garboard.model.paths import KUBERNETES_DIR
from garboard.phases.join.cluster import JoinedCluster
from garboard.phases.join.tunnel import ObservedTunnel
from garboard.phases.node.context import MachineView, NodeContext, ObservedCredentials
from garboard.phases.patching import NodePatches
from garboard.phases.preflight import MachineInspector
from garboard.pki.files import Folder
from garboard.values import dataclass

if TYPE_CHECKING:
    from garboard.phases.node import credentials
else:  # a worker has no certificates to read
    credentials = lazy_module("garboard.phases.node.credentials")


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinContext(NodeContext):
    """A node that joins, as a worker or as a control plane.

    Its `cluster` is the configuration of the cluster that was found, and its credentials are those on the machine with
    the shared ones as if they were there already.
    """

    config: JoinConfiguration
    found: JoinedCluster | None = None  # None where only phases run that need no cluster
    tunnel: ObservedTunnel | None = None  # None where the API server is reached directly
    is_whole: bool = False  # all phases run, so the end of the last one is the end of join

    @property
    def is_kubelet_local_mode(self) -> bool:
        return self.cluster.is_kubelet_local_mode

    @property
    def kubelet_server(self) -> str:
        """Whom the kubelet asks for its certificate: the API server beside it, if there is one and local mode is on.

        Behind a tunnel that is where its agent listens.
        """
        if self.tunnel is not None:
            return self.tunnel.agent.api_url
        if self.config.control_plane is not None and self.is_kubelet_local_mode:
            return f"https://{self.local_api_endpoint.host_port}"
        return self.found.server if self.found else ""

    @property
    def joined(self) -> JoinedCluster:
        """The cluster, for phases that need it."""
        assert self.found is not None, "phases that need the cluster are planned after it was found"
        return self.found


def observe_join(
    config: JoinConfiguration,
    found: JoinedCluster | None,
    *,
    host: NodeHost,
    machine: MachineView,
    patches: NodePatches,
    now: datetime,
    inspector: MachineInspector | None = None,
    ignored_checks: frozenset[str] = frozenset(),
    tunnel: ObservedTunnel | None = None,
    is_whole: bool = False,
) -> JoinContext:
    """Look at the machine for a cluster that was found, or for one with the defaults."""
    cluster = found.configuration if found else ClusterConfiguration()
    control_plane = config.control_plane
    observed = ObservedCredentials()
    if control_plane is not None:
        observed = _credentials(cluster, found, machine, now)
    return JoinContext(
        node_registration=config.node_registration,
        machine=machine,
        host=replace(host, is_external_ca=observed.is_external_ca),
        now=now,
        config_kind="JoinConfiguration",
        cluster=cluster,
        local_api_endpoint=control_plane.local_api_endpoint if control_plane else ApiEndpoint(),
        timeouts=config.timeouts,
        components=ComponentConfigs(kubelet=found.kubelet) if found else ComponentConfigs(),
        credentials=observed,
        patches=patches,
        inspector=inspector,
        ignored_checks=ignored_checks,
        config=config,
        found=found,
        tunnel=tunnel,
        is_whole=is_whole,
    )


def _credentials(
    cluster: ClusterConfiguration, found: JoinedCluster | None, machine: MachineView, now: datetime
) -> ObservedCredentials:
    shared = {each.name: each.data for each in found.shared} if found else {}
    folder = _WithShared(machine.folder(cluster.certificates_dir), shared)
    return credentials.observe_credentials(folder, machine.folder(KUBERNETES_DIR), now)


@dataclass(frozen=True, slots=True)
class _WithShared:
    """The certificates' folder as it will be once the shared files have been written."""

    below: Folder
    shared: Mapping[str, bytes]

    def read(self, name: str) -> bytes | None:
        return self.shared[name] if name in self.shared else self.below.read(name)

    def path_of(self, name: str) -> str:
        return self.below.path_of(name)
