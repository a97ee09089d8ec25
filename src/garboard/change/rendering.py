"""What a configuration makes of a node and of the objects that nodes share: everything that a change may touch.

A node's own endpoint, name and patches are inputs, too: without them another machine's addresses would be rendered.
"""

from collections.abc import Mapping
from functools import partial

from garboard.change.attribute import ALL_PODS
from garboard.change.configuration import StoredConfiguration, endpoint_of
from garboard.change.snapshot import ClusterSnapshot, SnapshotNode
from garboard.documents import Json, marshal_yaml
from garboard.manifests import ControlPlaneNode, NodeHost, ValueSource
from garboard.manifests.coredns import coredns_objects, dns_service
from garboard.manifests.kube_proxy import control_plane_url, daemon_set
from garboard.manifests.kubelet import PATCH_TARGET as KUBELET_TARGET
from garboard.manifests.objects import Patcher, unpatched
from garboard.manifests.pod import StaticPod
from garboard.manifests.static_pods import CONTROL_PLANE, control_plane_pod, etcd_pod
from garboard.model.component import LocalEtcd
from garboard.model.node import DEFAULT_CRI_SOCKET, ApiEndpoint
from garboard.patches import PatchFile, copy_of
from garboard.phases.patching import NodePatches
from garboard.pki.inputs import PkiInputs, node_inputs
from garboard.pki.spec import CERTIFICATES
from garboard.values import dataclass

_CERTIFICATES = ("apiserver", "etcd-server", "etcd-peer")  # those whose names the configuration decides
_INITIAL_CLUSTER = "--initial-cluster="


@dataclass(frozen=True, slots=True)
class RenderedPod:
    """The manifest of a static pod, patched; `plain` is what decided its values, as it was before the patches."""

    document: dict[str, Json]
    plain: StaticPod

    def source_of(self, path: tuple[str | int, ...]) -> ValueSource | None:
        return self.plain.sources.of(path)


@dataclass(frozen=True, slots=True)
class ClusterRendering:
    """Renders a configuration for the nodes of a snapshot; `patch_sets` are the files of patches, by digest."""

    configuration: StoredConfiguration
    snapshot: ClusterSnapshot
    patch_sets: Mapping[str, Mapping[str, bytes]]
    is_strict: bool = False  # errors of patches are refused: they are new, and not those that the nodes run with
    accepted: tuple[str, ...] = ()

    def static_pods(self, node: SnapshotNode, patch_set: str) -> dict[str, RenderedPod]:
        """Return the static pods of a control plane, with the patches of a recorded set."""
        if not node.is_control_plane or node.endpoint is None:
            return {}
        cluster, rendered = self.configuration.cluster, self._node(node)
        pods = [control_plane_pod(name, rendered) for name in CONTROL_PLANE]
        if isinstance(cluster.etcd, LocalEtcd):
            pods.append(etcd_pod(rendered, initial_cluster_of(node)))
        patcher = self.patches(node, patch_set).begin(cluster.release)
        found: dict[str, RenderedPod] = {}
        for pod in sorted(pods, key=lambda each: ALL_PODS.index(each.name)):
            patched = patcher(pod.name, copy_of(pod.document)) if patch_set else pod.document
            found[pod.name] = RenderedPod(patched if isinstance(patched, dict) else {}, pod)
        return found

    def kubelet(self, node: SnapshotNode, patch_set: str) -> dict[str, Json]:
        """Return the configuration of the kubelet of a node."""
        cluster = self.configuration.cluster
        document: Json = self.configuration.kubelet.printed(cluster.facts)
        if patch_set:
            document = self.patches(node, patch_set).begin(cluster.release)(KUBELET_TARGET, document)
        found = dict(document) if isinstance(document, dict) else {}
        if cluster.has_instance_config:
            found["containerRuntimeEndpoint"] = node.settings.cri_socket or DEFAULT_CRI_SOCKET
        return found

    def inputs(self, node: SnapshotNode) -> PkiInputs | None:
        """Return what the certificates of a control plane are made from."""
        if node.endpoint is None:
            return None
        endpoint = ApiEndpoint(advertise_address=node.endpoint.advertise_address, bind_port=node.endpoint.bind_port)
        return node_inputs(self.configuration.cluster, node.name, endpoint)

    def certificates(self, node: SnapshotNode) -> dict[str, tuple[str, ...]]:
        """Return the names in the serving certificates of a control plane."""
        inputs = self.inputs(node)
        if inputs is None:
            return {}
        found: dict[str, tuple[str, ...]] = {}
        for spec in CERTIFICATES:
            if spec.name in _CERTIFICATES and not (spec.is_etcd and inputs.has_external_etcd):
                names = spec.all_names(inputs)
                texts = [f"DNS:{each}" for each in names.dns] + [f"IP Address:{each}" for each in names.ips]
                found[f"certs/{spec.name}"] = tuple(sorted(dict.fromkeys(texts)))
        return found

    def kubeconfigs(self, node: SnapshotNode) -> tuple[str, str]:
        """Return what kubeconfigs of the cluster's users hold: the server, and the name of the cluster."""
        cluster = self.configuration.cluster
        endpoint = node.endpoint
        local = ApiEndpoint(
            advertise_address=endpoint.advertise_address if endpoint else "",
            bind_port=endpoint.bind_port if endpoint else 6443,
        )
        return control_plane_url(cluster, local), cluster.cluster_name

    def objects(self, patch_set: str) -> dict[str, str]:
        """Return the objects that are rendered anew, as texts, by the component that they make up."""
        cluster, first = self.configuration.cluster, next(iter(self.snapshot.control_planes), None)
        patcher: Patcher = unpatched
        if first and patch_set:
            patcher = self.patches(first, patch_set).begin(cluster.release)
        found = {"cluster-info": control_plane_url(cluster, endpoint_of(self.snapshot))}
        if not cluster.is_proxy_disabled:
            found["kube-proxy-workload"] = _text(daemon_set(cluster, {}, patcher).content)
        if not cluster.dns.disabled:
            for each in coredns_objects(cluster, patcher=patcher):
                if each.kind in ("Deployment", "ConfigMap"):
                    found[f"coredns/{each.kind}"] = _text(each.content)
            found["dns-service"] = _text(dns_service(cluster).content)
        return found

    def patches(self, node: SnapshotNode, patch_set: str) -> NodePatches:
        files = self.patch_sets.get(patch_set, {})
        listed = [PatchFile(path, path, partial(bytes, data)) for path, data in sorted(files.items())]
        role = "control-plane" if node.is_control_plane else "worker"
        return NodePatches(
            lambda: listed, is_strict=self.is_strict, node_name=node.name, role=role, accepted=self.accepted
        )

    def _node(self, node: SnapshotNode) -> ControlPlaneNode:
        assert node.endpoint is not None, "a node without an API server has no control plane"
        return ControlPlaneNode(
            cluster=self.configuration.cluster,
            name=node.name,
            endpoint=ApiEndpoint(advertise_address=node.endpoint.advertise_address, bind_port=node.endpoint.bind_port),
            host=NodeHost(hostname=node.name, ca_directories=frozenset(node.ca_directories or ())),
        )


def initial_cluster_of(node: SnapshotNode) -> str:
    """Return the members that the etcd of a node was told to join; nothing for the first one.

    Existing members ignore the flag; one whose data are gone would not.
    """
    words = node.mirror_pods["etcd"].command if "etcd" in node.mirror_pods else []
    if "--initial-cluster-state=existing" not in words:
        return ""
    return next((word.removeprefix(_INITIAL_CLUSTER) for word in words if word.startswith(_INITIAL_CLUSTER)), "")


def _text(content: Json) -> str:
    return marshal_yaml(content, source="object")
