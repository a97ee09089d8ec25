"""The configuration of a cluster as its three ConfigMaps hold it, read, defaulted, and printed again."""

from collections.abc import Mapping
from dataclasses import replace

from garboard.change.attribute import CLUSTER, KUBE_PROXY, KUBELET
from garboard.change.snapshot import ClusterSnapshot, StoredConfig
from garboard.config import (
    ComponentConfig,
    FixedFacts,
    cluster_text,
    load_stored_cluster,
    load_stored_kube_proxy,
    load_stored_kubelet,
)
from garboard.config.cluster_document import cluster_to_document
from garboard.config.component_configs import COMPONENT_KINDS
from garboard.documents import Json, marshal_yaml, write_yaml
from garboard.errors import BadDocument
from garboard.manifests.kube_proxy import configuration_object
from garboard.manifests.uploaded import KUBE_PROXY_CONFIG, KUBEADM_CONFIG, KUBELET_CONFIG, as_uploaded
from garboard.model.cluster import ClusterConfiguration
from garboard.model.node import ApiEndpoint
from garboard.values import dataclass

MAP_OF_KIND: Mapping[str, str] = {CLUSTER: KUBEADM_CONFIG, KUBELET: KUBELET_CONFIG, KUBE_PROXY: KUBE_PROXY_CONFIG}
_NOBODY = FixedFacts()  # what is stored depends on no machine


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredConfiguration:
    """The three documents, completed with kubeadm's defaults; without kube-proxy there are two."""

    cluster: ClusterConfiguration
    kubelet: ComponentConfig
    kube_proxy: ComponentConfig | None = None
    warnings: tuple[str, ...] = ()

    @property
    def documents(self) -> dict[str, dict[str, Json]]:
        """The documents as plain data, by kind, without apiVersion and kind: what a change is merged into."""
        found = {CLUSTER: cluster_to_document(self.cluster), KUBELET: dict(self.kubelet.tree)}
        if self.kube_proxy is not None:
            found[KUBE_PROXY] = dict(self.kube_proxy.tree)
        return found


def read_configuration(snapshot: ClusterSnapshot) -> StoredConfiguration:
    """Return the configuration that a snapshot holds."""
    texts = {kind: _text(snapshot, kind) for kind in (CLUSTER, KUBELET)}
    if KUBE_PROXY_CONFIG in snapshot.config_maps:
        texts[KUBE_PROXY] = _text(snapshot, KUBE_PROXY)
    return _loaded(texts, endpoint_of(snapshot), {kind: f"ConfigMap {MAP_OF_KIND[kind]}" for kind in texts})


def completed(
    documents: Mapping[str, Mapping[str, Json]], current: StoredConfiguration, endpoint: ApiEndpoint
) -> StoredConfiguration:
    """Return changed documents with their defaults; a field that is not known, or of a wrong type, is refused."""
    facts = current.cluster.facts
    versions = {CLUSTER: facts.config_api.written, **COMPONENT_KINDS}
    before = current.documents
    texts = {kind: write_yaml({"apiVersion": versions[kind], "kind": kind, **tree}) for kind, tree in documents.items()}
    names = {kind: f"the new {kind}" if tree != before.get(kind) else kind for kind, tree in documents.items()}
    changed = {kind for kind, tree in documents.items() if tree != before.get(kind)}
    return _loaded(texts, endpoint, names, changed)


def endpoint_of(snapshot: ClusterSnapshot) -> ApiEndpoint:
    """Return where the API server of the first control plane listens."""
    first = next((each.endpoint for each in snapshot.control_planes if each.endpoint), None)
    return ApiEndpoint(advertise_address=first.advertise_address, bind_port=first.bind_port) if first else ApiEndpoint()


def _text(snapshot: ClusterSnapshot, kind: str) -> str:
    name = MAP_OF_KIND[kind]
    found = snapshot.stored_text(name)
    if found is None:
        raise BadDocument(
            f"the cluster has no ConfigMap kube-system/{name} with a {kind}",
            hint="kubeadm and garboard store it when they make a cluster; restore it from a backup",
        )
    return found


def _loaded(
    texts: Mapping[str, str], endpoint: ApiEndpoint, names: Mapping[str, str], strict: set[str] | None = None
) -> StoredConfiguration:
    read = strict or set()
    loaded = load_stored_cluster(texts[CLUSTER], _NOBODY, name=names[CLUSTER], is_strict=CLUSTER in read)
    cluster = loaded.config
    kubelet = load_stored_kubelet(texts[KUBELET], cluster, name=names[KUBELET], is_strict=KUBELET in read)
    found = StoredConfiguration(cluster=cluster, kubelet=kubelet, warnings=loaded.warnings)
    if KUBE_PROXY not in texts:
        return found
    proxy = load_stored_kube_proxy(
        texts[KUBE_PROXY], cluster, endpoint, name=names[KUBE_PROXY], is_strict=KUBE_PROXY in read
    )
    return replace(found, kube_proxy=proxy)


def stored_data(kind: str, configuration: StoredConfiguration, endpoint: ApiEndpoint) -> dict[str, str]:
    """Return the keys of the ConfigMap of a kind as kubeadm would write them; other keys are left as they are."""
    cluster = configuration.cluster
    if kind == CLUSTER:
        return {"ClusterConfiguration": cluster_text(as_uploaded(cluster), cluster.facts)}
    if kind == KUBELET:
        return {"kubelet": marshal_yaml(configuration.kubelet.printed(cluster.facts), source=KUBELET_CONFIG)}
    assert configuration.kube_proxy is not None, "there is nothing to store"
    printed = configuration.kube_proxy.printed(cluster.facts)
    content = configuration_object(cluster, endpoint, printed, is_user_supplied=True).content["data"]
    assert isinstance(content, dict)
    return {key: str(value) for key, value in content.items()}


def with_data(found: StoredConfig, data: Mapping[str, str]) -> dict[str, str]:
    """Return the data of a ConfigMap with some of its keys replaced."""
    return {**found.data, **data}
