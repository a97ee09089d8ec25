"""kubeadm's configuration: bytes to typed values, defaulted, converted and validated as kubeadm of the minor does.

What the machine knows (host name, addresses, sockets) arrives through `HostFacts`; acting on a configuration is left
to the phases.
"""

from garboard.config.component_configs import ComponentConfig, ComponentConfigs
from garboard.config.dynamic_defaults import FixedFacts, HostFacts
from garboard.config.flags import (
    GivenFlags,
    check_bind_address,
    check_mixed_flags,
    ignored_checks,
    ignored_flags,
    init_from_values,
    join_from_values,
    parse_feature_gates,
    reset_from_values,
)
from garboard.config.load import (
    ConfigFile,
    Loaded,
    init_from_flags,
    join_from_flags,
    load_stored_cluster,
    load_stored_kube_proxy,
    load_stored_kubelet,
    reset_from_flags,
)
from garboard.config.printing import cluster_text, configuration_text
from garboard.config.problems import ConfigNotes, InvalidConfiguration, Problem
from garboard.config.reading import ReadOptions
from garboard.config.sources import ConfigSource
from garboard.config.versions import ResolvedVersion, resolve_version
from garboard.config.whole_file import check_file, migrated_text

__all__ = [
    "ComponentConfig",
    "ComponentConfigs",
    "ConfigFile",
    "ConfigNotes",
    "ConfigSource",
    "FixedFacts",
    "GivenFlags",
    "HostFacts",
    "InvalidConfiguration",
    "Loaded",
    "Problem",
    "ReadOptions",
    "ResolvedVersion",
    "check_bind_address",
    "check_file",
    "check_mixed_flags",
    "cluster_text",
    "configuration_text",
    "ignored_checks",
    "ignored_flags",
    "init_from_flags",
    "init_from_values",
    "join_from_flags",
    "join_from_values",
    "load_stored_cluster",
    "load_stored_kube_proxy",
    "load_stored_kubelet",
    "migrated_text",
    "parse_feature_gates",
    "reset_from_flags",
    "reset_from_values",
    "resolve_version",
]
