"""Nodes to render in tests."""

from garboard.manifests import ControlPlaneNode, NodeHost
from garboard.model.cluster import ClusterConfiguration
from garboard.model.node import ApiEndpoint

HOST = NodeHost(hostname="node-1")


def node(
    cluster: ClusterConfiguration | None = None, *, address: str = "192.0.2.10", host: NodeHost = HOST
) -> ControlPlaneNode:
    return ControlPlaneNode(
        cluster=cluster or ClusterConfiguration(),
        name="node-1",
        endpoint=ApiEndpoint(advertise_address=address),
        host=host,
    )
