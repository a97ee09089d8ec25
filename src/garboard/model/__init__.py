"""What a cluster is: versions, nodes, endpoints; plain values without I/O.

Reading documents into these values is left to `config`, acting on them to `engine` and its edges.
"""

from garboard.model.cluster import ClusterConfiguration, EncryptionAlgorithm, Networking
from garboard.model.component import (
    ApiServer,
    Arg,
    ControlPlaneComponent,
    Dns,
    EnvVar,
    ExternalEtcd,
    HostPathMount,
    LocalEtcd,
    arg_value,
)
from garboard.model.duration import Duration
from garboard.model.json_value import Json
from garboard.model.lifecycle import (
    BootstrapToken,
    FileDiscovery,
    InitConfiguration,
    JoinConfiguration,
    JoinControlPlane,
    ResetConfiguration,
    TokenDiscovery,
)
from garboard.model.minors import MINORS, FeatureGate, MinorFacts, facts_of
from garboard.model.node import CONTROL_PLANE_TAINT, ApiEndpoint, NodeRegistration, Taint, Timeouts
from garboard.model.upgrade import UpgradeApply, UpgradeConfiguration, UpgradeDiff, UpgradeNode, UpgradePlan
from garboard.model.version import DEFAULT_VERSION, SUPPORTED_VERSIONS, KubernetesVersion, Minor, reference_version

__all__ = [
    "CONTROL_PLANE_TAINT",
    "DEFAULT_VERSION",
    "MINORS",
    "SUPPORTED_VERSIONS",
    "ApiEndpoint",
    "ApiServer",
    "Arg",
    "BootstrapToken",
    "ClusterConfiguration",
    "ControlPlaneComponent",
    "Dns",
    "Duration",
    "EncryptionAlgorithm",
    "EnvVar",
    "ExternalEtcd",
    "FeatureGate",
    "FileDiscovery",
    "HostPathMount",
    "InitConfiguration",
    "JoinConfiguration",
    "JoinControlPlane",
    "Json",
    "KubernetesVersion",
    "LocalEtcd",
    "Minor",
    "MinorFacts",
    "Networking",
    "NodeRegistration",
    "ResetConfiguration",
    "Taint",
    "Timeouts",
    "TokenDiscovery",
    "UpgradeApply",
    "UpgradeConfiguration",
    "UpgradeDiff",
    "UpgradeNode",
    "UpgradePlan",
    "arg_value",
    "facts_of",
    "reference_version",
]
