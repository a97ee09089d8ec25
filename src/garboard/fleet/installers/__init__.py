"""The contract of installers, and our own: kubeadm documents and addons for hosts that are there already. Pure.

`contract` is what every installer does; the other modules are the installer `garboard`: its install config, the
manifests that it renders, the bundles that it makes of them, and what it decides about hosts. Carrying out is left to
`garboard.node.fleet`.
"""

from garboard.fleet.installers.bundles import Bundles, BundleSecrets, build_bundles
from garboard.fleet.installers.contract import (
    CREATE_CLUSTER,
    CREATE_IGNITION_CONFIGS,
    CREATE_MANIFESTS,
    DESTROY_CLUSTER,
    INSTALL_CONFIG,
    KUBECONFIG,
    METADATA,
    BadMetadata,
    Installer,
    InstallerFailed,
    InstallMetadata,
    Verb,
    read_metadata,
)
from garboard.fleet.installers.host_config import (
    API_VERSION,
    FleetHost,
    HostsConfig,
    read_hosts_config,
)
from garboard.fleet.installers.host_view import (
    BeginCommand,
    CommandDone,
    HostClaim,
    HostRefused,
    HostView,
    NextCommand,
    ResumeRun,
    next_command,
    reuse_of,
    why_not_claimed,
)
from garboard.fleet.installers.hosts_metadata import HostsMetadata, hosts_metadata, read_hosts_metadata
from garboard.fleet.installers.manifests import render_manifests

__all__ = [
    "API_VERSION",
    "CREATE_CLUSTER",
    "CREATE_IGNITION_CONFIGS",
    "CREATE_MANIFESTS",
    "DESTROY_CLUSTER",
    "INSTALL_CONFIG",
    "KUBECONFIG",
    "METADATA",
    "BadMetadata",
    "BeginCommand",
    "BundleSecrets",
    "Bundles",
    "CommandDone",
    "FleetHost",
    "HostClaim",
    "HostRefused",
    "HostView",
    "HostsConfig",
    "HostsMetadata",
    "InstallMetadata",
    "Installer",
    "InstallerFailed",
    "NextCommand",
    "ResumeRun",
    "Verb",
    "build_bundles",
    "hosts_metadata",
    "next_command",
    "read_hosts_config",
    "read_hosts_metadata",
    "read_metadata",
    "render_manifests",
    "reuse_of",
    "why_not_claimed",
]
