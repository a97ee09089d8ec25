"""The cluster that a node joins: found, verified and read, before anything is planned."""

import base64
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from garboard.config import ComponentConfig, HostFacts, load_stored_cluster, load_stored_kubelet
from garboard.documents import Json
from garboard.errors import BadDocument, GarboardError, InvalidValue
from garboard.lazy import lazy_module
from garboard.manifests.objects import KUBE_SYSTEM
from garboard.manifests.uploaded import KUBEADM_CERTS, KUBEADM_CONFIG, KUBELET_CONFIG
from garboard.model import SUPPORTED_VERSIONS
from garboard.model.cluster import ClusterConfiguration
from garboard.model.lifecycle import JoinConfiguration
from garboard.phases.join.discovery import Api, ApiConnector, Discovered, discover, retried
from garboard.pki.files import NewFile
from garboard.pki.kubeconfig import read_kubeconfig
from garboard.values import dataclass

if TYPE_CHECKING:
    from garboard.phases.node import credentials
    from garboard.pki import transfer
else:  # a worker has nothing to share
    credentials = lazy_module("garboard.phases.node.credentials")
    transfer = lazy_module("garboard.pki.transfer")

_SOURCE, _KUBE_PROXY = "the credentials of this join", "kube-proxy"


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedCluster:
    """A cluster as its ConfigMaps describe it, and what it knows of the node that is about to join."""

    discovered: Discovered
    configuration: ClusterConfiguration
    kubelet: ComponentConfig
    has_node: bool = False  # a Node of our name
    has_ready_node: bool = False  # … that is Ready
    # What control planes have in common, if it was asked for.
    shared: tuple[NewFile, ...] = field(default=(), repr=False)
    warnings: tuple[str, ...] = ()

    @property
    def server(self) -> str:
        return self.discovered.server


def find_cluster(
    config: JoinConfiguration, connector: ApiConnector, host: HostFacts, *, downloads: bool
) -> JoinedCluster:
    """Find the cluster that a configuration means; with `downloads`, read what its control planes share, too.

    What is shared is only read with a certificate key.
    """
    discovered = discover(config, connector)
    api = connector.as_user(discovered.kubeconfig.to_bytes(), _SOURCE)
    key = config.control_plane.certificate_key if config.control_plane and downloads else ""
    name = config.node_registration.name
    return retried(
        lambda: _read_cluster(api, host, discovered, node_name=name, certificate_key=key),
        connector,
        config.timeouts.kubernetes_api_call,
    )


def _read_cluster(
    api: Api, host: HostFacts, discovered: Discovered, *, node_name: str, certificate_key: str
) -> JoinedCluster:
    configuration, warnings = _configuration(api, host)
    node = api.find("Node", "", node_name)
    return JoinedCluster(
        discovered=discovered,
        configuration=configuration,
        kubelet=_kubelet(api, configuration),
        has_node=node is not None,
        has_ready_node=_is_ready(node),
        shared=_shared(api, configuration, certificate_key) if certificate_key else (),
        warnings=warnings,
    )


def _configuration(api: Api, host: HostFacts) -> tuple[ClusterConfiguration, tuple[str, ...]]:
    text = _required(api, KUBEADM_CONFIG, "ClusterConfiguration", "garboard init phase upload-config kubeadm")
    try:
        loaded = load_stored_cluster(text, host)
    except InvalidValue as error:
        supported = ", ".join(str(each.as_minor) for each in SUPPORTED_VERSIONS)
        raise BadDocument(
            f"this cluster cannot be joined: {error.message}",
            hint=f"the minors that garboard knows are {supported}; join with the kubeadm of the cluster's minor",
            error_class=error.error_class,
        ) from error
    return loaded.config, loaded.warnings


def _kubelet(api: Api, configuration: ClusterConfiguration) -> ComponentConfig:
    text = _required(api, KUBELET_CONFIG, "kubelet", "garboard init phase upload-config kubelet")
    return load_stored_kubelet(text, configuration)


def kube_proxy_server(found: JoinedCluster, connector: ApiConnector) -> str:
    """Return which API server kube-proxy asks, as its ConfigMap says; empty if that is unknown."""
    try:
        api = connector.as_user(found.discovered.kubeconfig.to_bytes(), _SOURCE)
        text = _text_of(api.find("ConfigMap", KUBE_SYSTEM, _KUBE_PROXY), "kubeconfig.conf")
        return read_kubeconfig(text.encode(), _KUBE_PROXY).server if text else ""
    except GarboardError:
        return ""  # a token may have no right to read it, and a cluster no kube-proxy


def _required(api: Api, name: str, key: str, command: str) -> str:
    try:
        found = _text_of(api.find("ConfigMap", KUBE_SYSTEM, name), key)
    except GarboardError as error:
        raise _refused(error) from error
    if found is None:
        raise GarboardError(
            f"the cluster has no ConfigMap {KUBE_SYSTEM}/{name} with the key {key}",
            hint=f"on a control-plane node, run: {command}",
            error_class="not-found",
        )
    return found


def _text_of(config_map: Mapping[str, Json] | None, key: str) -> str | None:
    data = (config_map or {}).get("data")
    value = data.get(key) if isinstance(data, dict) else None
    return value if isinstance(value, str) else None


def _refused(error: GarboardError) -> GarboardError:
    """Return what a refusal means for a node that came with a token."""
    if error.error_class != "unauthenticated":
        return error
    return GarboardError(
        "the cluster does not accept the credentials of this join: "
        "the token has expired, was deleted, is not for authentication, or is of another cluster",
        hint="make a new one on a control-plane node: garboard token create --print-join-command",
        error_class="unknown-token",
    )


def _is_ready(node: Mapping[str, Json] | None) -> bool:
    status = (node or {}).get("status")
    conditions = status.get("conditions") if isinstance(status, dict) else None
    return any(
        each.get("type") == "Ready" and each.get("status") == "True"
        for each in (conditions if isinstance(conditions, list) else ())
        if isinstance(each, dict)
    )


def _shared(api: Api, configuration: ClusterConfiguration, certificate_key: str) -> tuple[NewFile, ...]:
    key = transfer.parse_certificate_key(certificate_key)
    secret = api.find("Secret", KUBE_SYSTEM, KUBEADM_CERTS)
    if secret is None:
        raise GarboardError(
            f"the cluster has no Secret {KUBE_SYSTEM}/{KUBEADM_CERTS}: it is removed two hours after it was made",
            hint="on a control-plane node, run: garboard init phase upload-certs --upload-certs",
            error_class="incomplete-secret",
        )
    data = secret.get("data")
    sealed = {name: base64.b64decode(str(value)) for name, value in data.items()} if isinstance(data, dict) else {}
    return transfer.opened_files(sealed, credentials.files_to_share(configuration), key)
