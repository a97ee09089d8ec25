"""What the phases wait for: each gate is a value that knows how it is probed and what explains that it stays closed.

A new gate is one module here; journals know it by its `JOURNAL_TYPES`. The node comes in through `NodeView`; polling
and deadlines are left to the interpreter that waits.
"""

from garboard.phases.gates.change import CertificateServed, KubeProxySettled
from garboard.phases.gates.cluster_version import ClusterVersionRaised
from garboard.phases.gates.control_plane import (
    ApiServerReady,
    ComponentHealthy,
    EtcdHealthy,
    EtcdSparesMember,
    MemberCaughtUp,
    control_plane_gates,
)
from garboard.phases.gates.drained import NodeDrained
from garboard.phases.gates.evidence import API_SERVER, component_evidence
from garboard.phases.gates.kubelet import KubeletBootstrapped, KubeletHealthy, NodeReady, NodeRegistered
from garboard.phases.gates.static_pods import ComponentsSettled, ListenerClosed, PodsEnded
from garboard.phases.gates.tunnel import TunnelOpen
from garboard.phases.gates.view import Answer, NodeView, ObservedContainer

__all__ = [
    "API_SERVER",
    "Answer",
    "ApiServerReady",
    "CertificateServed",
    "ClusterVersionRaised",
    "ComponentHealthy",
    "ComponentsSettled",
    "EtcdHealthy",
    "EtcdSparesMember",
    "KubeProxySettled",
    "KubeletBootstrapped",
    "KubeletHealthy",
    "ListenerClosed",
    "MemberCaughtUp",
    "NodeDrained",
    "NodeReady",
    "NodeRegistered",
    "NodeView",
    "ObservedContainer",
    "PodsEnded",
    "TunnelOpen",
    "component_evidence",
    "control_plane_gates",
]
