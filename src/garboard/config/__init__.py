"""kubeadm's configuration: bytes to typed values, defaulted, converted and validated as kubeadm of the minor does.

What the machine knows (host name, addresses, sockets) arrives through `HostFacts`; acting on a configuration is left
to the phases.
"""

from garboard.config.component_configs import ComponentConfig, ComponentConfigs, with_resolver
from garboard.config.flags import check_mixed_flags, parse_feature_gates
from garboard.config.host_facts import FixedFacts, HostFacts
from garboard.config.load import ConfigFile, Loaded, init_from_flags, join_from_flags, reset_from_flags
from garboard.config.printing import cluster_text, configuration_text
from garboard.config.problems import InvalidConfiguration, Notes, Problem
from garboard.config.reading import ReadOptions
from garboard.config.running import check_bind_address, ignored_checks
from garboard.config.sources import ConfigSource
from garboard.config.stored import load_stored_cluster, load_stored_kubelet
from garboard.config.versions import ResolvedVersion, resolve_version
from garboard.config.whole_file import check_file, migrated_text

__all__ = [
    "ComponentConfig",
    "ComponentConfigs",
    "ConfigFile",
    "ConfigSource",
    "FixedFacts",
    "HostFacts",
    "InvalidConfiguration",
    "Loaded",
    "Notes",
    "Problem",
    "ReadOptions",
    "ResolvedVersion",
    "check_bind_address",
    "check_file",
    "check_mixed_flags",
    "cluster_text",
    "configuration_text",
    "ignored_checks",
    "init_from_flags",
    "join_from_flags",
    "load_stored_cluster",
    "load_stored_kubelet",
    "migrated_text",
    "parse_feature_gates",
    "reset_from_flags",
    "resolve_version",
    "with_resolver",
]
