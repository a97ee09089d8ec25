"""What a node that joins reads of the cluster, before it plans anything."""

import base64
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from garboard.config import ComponentConfig, HostFacts, load_stored_cluster, load_stored_kubelet
from garboard.documents import Json
from garboard.errors import BadDocument, GarboardError, InvalidValue, NotReady
from garboard.manifests.objects import KUBE_SYSTEM
from garboard.manifests.uploaded import KUBEADM_CERTS, KUBEADM_CONFIG, KUBELET_CONFIG
from garboard.model import SUPPORTED_VERSIONS
from garboard.model.cluster import ClusterConfiguration
from garboard.model.component import ExternalEtcd
from garboard.phases.join.discovery import Api, text_of
from garboard.pki.files import NewFile
from garboard.values import dataclass

if TYPE_CHECKING:  # workers share nothing
    from garboard.pki.transfer import ExternalEtcdFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedCluster:
    """A cluster as its ConfigMaps describe it, and what it knows of the node that is about to join."""

    configuration: ClusterConfiguration
    kubelet: ComponentConfig
    has_node: bool = False  # a Node of our name
    has_ready_node: bool = False  # … that is Ready
    shared: tuple[NewFile, ...] = field(
        default=(), repr=False
    )  # what control planes have in common, if it was asked for
    warnings: tuple[str, ...] = ()


def read_cluster(api: Api, host: HostFacts, *, node_name: str, certificate_key: str = "") -> JoinedCluster:
    """Read the cluster's configuration and, with a certificate key, what its control planes share."""
    configuration, warnings = _configuration(api, host)
    node = api.find("Node", "", node_name)
    return JoinedCluster(
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


def _required(api: Api, name: str, key: str, command: str) -> str:
    try:
        found = text_of(api.find("ConfigMap", KUBE_SYSTEM, name), key)
    except GarboardError as error:
        raise _refused(error) from error
    if found is None:
        raise NotReady(
            f"the cluster has no ConfigMap {KUBE_SYSTEM}/{name} with the key {key}",
            hint=f"on a control-plane node, run: {command}",
            error_class="not-found",
        )
    return found


def _refused(error: GarboardError) -> GarboardError:
    """Return what a refusal means to who came with a token."""
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
    from garboard.pki.transfer import opened_files, parse_certificate_key, shared_files

    key = parse_certificate_key(certificate_key)
    secret = api.find("Secret", KUBE_SYSTEM, KUBEADM_CERTS)
    if secret is None:
        raise NotReady(
            f"the cluster has no Secret {KUBE_SYSTEM}/{KUBEADM_CERTS}: it is removed two hours after it was made",
            hint="on a control-plane node, run: garboard init phase upload-certs --upload-certs",
            error_class="incomplete-secret",
        )
    data = secret.get("data")
    sealed = {name: base64.b64decode(str(value)) for name, value in data.items()} if isinstance(data, dict) else {}
    return opened_files(sealed, shared_files(_external_files(configuration)), key)


def _external_files(configuration: ClusterConfiguration) -> "ExternalEtcdFiles | None":
    from garboard.pki.transfer import ExternalEtcdFiles

    etcd = configuration.etcd
    return ExternalEtcdFiles(etcd.ca_file, etcd.cert_file, etcd.key_file) if isinstance(etcd, ExternalEtcd) else None
