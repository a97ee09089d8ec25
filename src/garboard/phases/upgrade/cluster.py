"""The cluster that is upgraded: what its ConfigMaps say, and what of that holds for this node."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from typing import Protocol

from garboard.config import (
    ComponentConfigs,
    HostFacts,
    ResolvedVersion,
    load_stored_cluster,
    load_stored_kube_proxy,
    load_stored_kubelet,
)
from garboard.documents import Json
from garboard.errors import BadDocument, InvalidValue
from garboard.manifests.objects import CONFIG_HASH_ANNOTATION, KUBE_SYSTEM, data_hash
from garboard.manifests.uploaded import CONFIG_KEYS, KUBEADM_CONFIG, KUBELET_CONFIG
from garboard.model.cluster import ClusterConfiguration
from garboard.model.minors import MINORS
from garboard.model.node import ApiEndpoint
from garboard.model.version import KubernetesVersion
from garboard.phases.gates import API_SERVER
from garboard.phases.node.records import patch_sets_of
from garboard.phases.static_pods import ETCD
from garboard.values import dataclass

KUBE_PROXY = "kube-proxy"
_RESTORED_BY = {
    KUBEADM_CONFIG: "garboard init phase upload-config kubeadm --config FILE",
    KUBELET_CONFIG: "garboard init phase upload-config kubelet --config FILE",
    KUBE_PROXY: "garboard init phase addon kube-proxy --config FILE",
}
_CONTROL_PLANE_LABEL = "node-role.kubernetes.io/control-plane"


class Objects(Protocol):
    """The objects of the cluster, as far as an upgrade reads them."""

    def find(self, kind: str, namespace: str, name: str) -> dict[str, Json] | None: ...

    def labelled(self, kind: str, namespace: str, selector: str) -> Sequence[dict[str, Json]]: ...

    def list_all(self, kind: str) -> Sequence[dict[str, Json]]: ...


@dataclass(frozen=True, slots=True)
class ClusterNode:
    """A Node of the cluster."""

    name: str
    is_control_plane: bool
    is_ready: bool
    kubelet: KubernetesVersion | None  # None if it says nothing that is a version


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradedCluster:
    """A cluster as it is stored, and with the target's version; components have the defaults of the target."""

    former: ClusterConfiguration
    target: ClusterConfiguration
    components: ComponentConfigs
    nodes: tuple[ClusterNode, ...] = ()
    api_servers: Mapping[str, str] = field(default_factory=dict)  # the images of API servers, by node
    etcds: Mapping[str, str] = field(default_factory=dict)  # the images of etcd's static pods, by node
    warnings: tuple[str, ...] = ()
    # What the cluster stores, for its record: the texts of its configuration by ConfigMap, and patch sets by node.
    documents: Mapping[str, str] = field(default_factory=dict)
    patch_sets: Mapping[str, str] = field(default_factory=dict)

    @property
    def members(self) -> int:
        return len(self.etcds)

    @property
    def kubelets(self) -> dict[str, KubernetesVersion]:
        return {each.name: each.kubelet for each in self.nodes if each.kubelet}


def read_stored(objects: Objects, host: HostFacts) -> tuple[ClusterConfiguration, tuple[str, ...]]:
    """Return the configuration that the cluster stores, and warnings; a minor that is not known is refused."""
    text = _text(objects.find("ConfigMap", KUBE_SYSTEM, KUBEADM_CONFIG), KUBEADM_CONFIG, "ClusterConfiguration")
    with _stored_in(KUBEADM_CONFIG):
        loaded = load_stored_cluster(text, host)
        if "kubernetesVersion" not in text:  # a default would be taken for what the cluster has
            raise BadDocument(f"ConfigMap {KUBEADM_CONFIG} does not say which kubernetesVersion the cluster has")
    return loaded.config, loaded.warnings


@contextmanager
def _stored_in(name: str) -> Iterator[None]:
    """Say how to go on where a document in a ConfigMap of the cluster cannot be accepted."""
    try:
        yield
    except BadDocument as error:
        message, hint = error.message, f"correct it: kubectl -n {KUBE_SYSTEM} edit configmap {name}"
        if error.error_class == "unsupported-version":
            known = " and ".join(map(str, MINORS))
            message = f"this cluster cannot be upgraded: {message}"
            hint = f"garboard upgrades clusters of {known}; go there first with the kubeadm of each minor on the way"
        elif error.hint:
            hint = f"{error.hint}; {hint}"
        raise BadDocument(message, hint=hint, error_class=error.error_class) from error


def read_upgraded(
    objects: Objects, host: HostFacts, version: ResolvedVersion | None, endpoint: ApiEndpoint, *, is_worker: bool
) -> UpgradedCluster:
    """Read what an upgrade to a version plans from; without a version, to that which the cluster stores.

    A worker may read no more than its own kubelet needs.
    """
    former, warnings = read_stored(objects, host)
    target = replace(former, kubernetes_version=version.text if version else former.kubernetes_version)
    kubelet_map = objects.find("ConfigMap", KUBE_SYSTEM, KUBELET_CONFIG)
    text = _text(kubelet_map, KUBELET_CONFIG, "kubelet")
    with _stored_in(KUBELET_CONFIG):
        kubelet = load_stored_kubelet(text, target, is_user_supplied=not is_signed(kubelet_map))
    if is_worker:
        return UpgradedCluster(
            former=former, target=target, components=ComponentConfigs(kubelet=kubelet), warnings=warnings
        )
    proxy_map = objects.find("ConfigMap", KUBE_SYSTEM, KUBE_PROXY)
    components = ComponentConfigs(kubelet=kubelet)
    if proxy_map is not None:
        text = _text(proxy_map, KUBE_PROXY, "config.conf")
        with _stored_in(KUBE_PROXY):
            proxy = load_stored_kube_proxy(text, target, endpoint, is_user_supplied=not is_signed(proxy_map))
        components = replace(components, kube_proxy=proxy)
    nodes = objects.list_all("Node")
    return UpgradedCluster(
        former=former,
        target=target,
        components=components,
        nodes=nodes_of(nodes),
        api_servers=images_of(objects, API_SERVER),
        etcds=images_of(objects, ETCD),
        warnings=warnings,
        documents=_documents(objects),
        patch_sets=patch_sets_of(objects, nodes),
    )


def _documents(objects: Objects) -> dict[str, str]:
    found = {name: _mapping(objects.find("ConfigMap", KUBE_SYSTEM, name), "data").get(key)
             for name, key in CONFIG_KEYS.items()}  # fmt: skip
    return {name: text for name, text in found.items() if isinstance(text, str)}


def nodes_of(nodes: Iterable[Mapping[str, Json]]) -> tuple[ClusterNode, ...]:
    """Return the Nodes of a cluster as an upgrade sees them."""
    return tuple(map(_node, nodes))


def is_signed(config_map: Mapping[str, Json] | None) -> bool:
    """Say whether kubeadm made the configuration in a ConfigMap by itself, and nobody has changed it since."""
    data, metadata = _mapping(config_map, "data"), _mapping(config_map, "metadata")
    texts = {name: value for name, value in data.items() if isinstance(value, str)}
    return _mapping(metadata, "annotations").get(CONFIG_HASH_ANNOTATION) == data_hash(texts)


def _text(config_map: Mapping[str, Json] | None, name: str, key: str) -> str:
    found = _mapping(config_map, "data").get(key)
    if isinstance(found, str):
        return found
    raise BadDocument(
        f"the cluster has no ConfigMap {KUBE_SYSTEM}/{name} with the key {key}",
        hint=f"bring it back from a backup of etcd, or from its configuration: {_RESTORED_BY[name]}",
    )


def _node(content: Mapping[str, Json]) -> ClusterNode:
    metadata, status = _mapping(content, "metadata"), _mapping(content, "status")
    conditions = status.get("conditions")
    is_ready = any(
        isinstance(each, dict) and each.get("type") == "Ready" and each.get("status") == "True"
        for each in (conditions if isinstance(conditions, list) else ())
    )
    return ClusterNode(
        name=str(metadata.get("name")),
        is_control_plane=_CONTROL_PLANE_LABEL in _mapping(metadata, "labels"),
        is_ready=is_ready,
        kubelet=_version(_mapping(status, "nodeInfo").get("kubeletVersion")),
    )


def _version(text: Json) -> KubernetesVersion | None:
    try:
        return KubernetesVersion.parse(str(text).partition("-")[0].partition("+")[0])
    except InvalidValue:
        return None


def images_of(objects: Objects, component: str) -> dict[str, str]:
    """Return the images of the static pods of a component, by node."""
    pods = objects.labelled("Pod", KUBE_SYSTEM, f"component={component}")
    return dict(_image(pod, component) for pod in pods)


def _image(pod: Mapping[str, Json], component: str) -> tuple[str, str]:
    spec = _mapping(pod, "spec")
    containers = spec.get("containers")
    known = [each for each in containers if isinstance(each, dict)] if isinstance(containers, list) else []
    # A patch may have put another container before it.
    own = next((each for each in known if each.get("name") == component), known[0] if known else {})
    return str(spec.get("nodeName")), str(own.get("image"))


def _mapping(holder: Mapping[str, Json] | None, key: str) -> dict[str, Json]:
    found = (holder or {}).get(key)
    return found if isinstance(found, dict) else {}
