"""Configurations as text, equal byte for byte with what kubeadm of the minor prints."""

from collections.abc import Iterable

from garboard.config.cluster_document import cluster_to_document
from garboard.config.component_configs import COMPONENT_KINDS, ComponentConfigs, default_components
from garboard.config.decoding import printed_document
from garboard.config.node_documents import init_to_document, join_to_document, reset_to_document
from garboard.config.problems import ConfigNotes
from garboard.config.upgrade_document import upgrade_to_document
from garboard.documents import Json, marshal_yaml, write_yaml
from garboard.errors import BadUsage
from garboard.model.cluster import ClusterConfiguration
from garboard.model.lifecycle import (
    BootstrapToken,
    InitConfiguration,
    JoinConfiguration,
    ResetConfiguration,
    TokenDiscovery,
    UpgradeConfiguration,
)
from garboard.model.minors import MinorFacts
from garboard.model.node import DEFAULT_CRI_SOCKET, ApiEndpoint, NodeRegistration

PLACEHOLDER_TOKEN = "abcdef.0123456789abcdef"
_SEPARATOR = "---\n"

Configuration = InitConfiguration | JoinConfiguration | ResetConfiguration | UpgradeConfiguration


def configuration_text(config: Configuration, facts: MinorFacts) -> str:
    """Print a configuration as YAML; that of init comes with its cluster's as a second document."""
    match config:
        case InitConfiguration():
            init = _document_text("InitConfiguration", init_to_document(config), facts)
            return init + _SEPARATOR + cluster_text(config.cluster, facts)
        case JoinConfiguration():
            return _document_text("JoinConfiguration", join_to_document(config), facts)
        case ResetConfiguration():
            return _document_text("ResetConfiguration", reset_to_document(config), facts)
        case UpgradeConfiguration():
            return _document_text("UpgradeConfiguration", upgrade_to_document(config), facts)


def cluster_text(cluster: ClusterConfiguration, facts: MinorFacts) -> str:
    """Print a ClusterConfiguration as it stands in the kubeadm-config ConfigMap."""
    return _document_text("ClusterConfiguration", cluster_to_document(cluster), facts)


def joined(texts: Iterable[str]) -> str:
    """Join printed documents into one file."""
    return _SEPARATOR.join(texts)


def _document_text(kind: str, document: dict[str, Json], facts: MinorFacts) -> str:
    api_version = facts.config_api.written
    return marshal_yaml(printed_document(document, api_version, kind, facts), source=kind)


def init_defaults_text(facts: MinorFacts, component_kinds: Iterable[str] = ()) -> str:
    """Print what `config print init-defaults` prints: placeholders stand for what the machine would decide."""
    minor = facts.minor
    init = InitConfiguration(
        # kubeadm prints its own minor without a v, and always with patch 0.
        cluster=ClusterConfiguration(kubernetes_version=f"{minor}.0"),
        bootstrap_tokens=(BootstrapToken(token=PLACEHOLDER_TOKEN),),
        node_registration=NodeRegistration(name="node", cri_socket=DEFAULT_CRI_SOCKET),
        local_api_endpoint=ApiEndpoint(advertise_address="1.2.3.4"),
    )
    components = default_components(ComponentConfigs(), init.cluster, init.local_api_endpoint, facts, ConfigNotes())
    by_kind = {config.kind: config for config in (components.kubelet, components.kube_proxy)}
    texts = [configuration_text(init, facts)]
    for kind in component_kinds:
        if kind not in by_kind:
            raise BadUsage(f"--component-configs needs to contain some of [{' '.join(sorted(COMPONENT_KINDS))}]")
        texts.append(write_yaml(by_kind[kind].printed(facts)))
    return joined(texts)


def join_defaults_text(facts: MinorFacts, hostname: str) -> str:
    discovery = TokenDiscovery(
        token=PLACEHOLDER_TOKEN, api_server_endpoint="kube-apiserver:6443", unsafe_skip_ca_verification=True
    )
    node = NodeRegistration(name=hostname.strip().lower(), cri_socket=DEFAULT_CRI_SOCKET)
    join = JoinConfiguration(discovery=discovery, tls_bootstrap_token=PLACEHOLDER_TOKEN, node_registration=node)
    return configuration_text(join, facts)


def reset_defaults_text(facts: MinorFacts) -> str:
    return configuration_text(ResetConfiguration(cri_socket=DEFAULT_CRI_SOCKET), facts)


def upgrade_defaults_text(facts: MinorFacts) -> str:
    return configuration_text(UpgradeConfiguration(), facts)
