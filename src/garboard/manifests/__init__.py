"""What kubeadm renders for a node and a cluster, byte for byte: static pods, kubelet files, addons, ConfigMaps, RBAC.

Pure functions from the model to files and objects. Certificates and kubeconfigs are left to `pki`, applying the user's
patches to the caller's `Patcher`, writing and sending to the phases.
"""

from garboard.manifests.node import ControlPlaneNode, NodeHost, RootlessIds
from garboard.manifests.objects import ClusterObject, Patcher, RenderedFile, unpatched
from garboard.manifests.sources import ConfigField, HostFact, ValueSource

__all__ = [
    "ClusterObject",
    "ConfigField",
    "ControlPlaneNode",
    "HostFact",
    "NodeHost",
    "Patcher",
    "RenderedFile",
    "RootlessIds",
    "ValueSource",
    "unpatched",
]
