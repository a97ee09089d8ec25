"""Snapshots of clusters that are made up: the fixtures F1 to F4 of the scenarios of change, and variations of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from garboard.change.snapshot import (
    ClusterSnapshot,
    MirrorPod,
    NodeAddress,
    NodeEndpoint,
    NodeSettings,
    PodCounts,
    SnapshotAddons,
    SnapshotMember,
    SnapshotNode,
    SnapshotServiceRange,
    StoredConfig,
)
from garboard.config import ConfigFile, FixedFacts, Loaded, ReadOptions, cluster_text
from garboard.documents import Json, read_yaml, write_yaml
from garboard.manifests import ClusterObject, ControlPlaneNode, NodeHost
from garboard.manifests.coredns import corefile_object
from garboard.manifests.kube_proxy import configuration_object
from garboard.manifests.kubelet import config_file, flags_file, instance_config_file
from garboard.manifests.objects import config_map
from garboard.manifests.pod import StaticPod
from garboard.manifests.static_pods import CONTROL_PLANE, control_plane_pod, etcd_pod, static_pod_file
from garboard.manifests.uploaded import as_uploaded, kubelet_config_objects
from garboard.model import DEFAULT_VERSION, KubernetesVersion
from garboard.model.cluster import ClusterConfiguration, coredns_image, kubernetes_image
from garboard.model.component import LocalEtcd
from garboard.model.lifecycle import InitConfiguration
from garboard.model.node import ApiEndpoint, NodeRegistration

SOCKET = "unix:///var/run/containerd/containerd.sock"
ENDPOINT = "k8s.example.com:6443"
OBSERVED_AT = "2026-11-18T12:00:00Z"
KUBELET_API, KUBE_PROXY_API = "kubelet.config.k8s.io/v1beta1", "kubeproxy.config.k8s.io/v1alpha1"


@dataclass(frozen=True, kw_only=True)
class MadeUpCluster:
    """What a snapshot is made of; documents are those that a user would have given to init."""

    control_planes: Sequence[str] = ("cp1",)
    workers: Sequence[str] = ("w1", "w2")
    version: KubernetesVersion = DEFAULT_VERSION
    cluster: Mapping[str, Json] = field(default_factory=dict)
    kubelet: Mapping[str, Json] = field(default_factory=dict)
    kube_proxy: Mapping[str, Json] = field(default_factory=dict)
    is_seen: bool = False  # whether the files of nodes were looked at
    pods: Mapping[str, int] = field(default_factory=dict)  # by node
    change_manifest: Callable[[str, str, str], str] | None = None  # by node, component and text

    def snapshot(self) -> ClusterSnapshot:
        loaded = self._loaded()
        cluster = loaded.config.cluster
        names = [*self.control_planes, *self.workers]
        nodes = [self._node(loaded, name, number) for number, name in enumerate(names, start=1)]
        return ClusterSnapshot(
            observed_at=OBSERVED_AT,
            server_version=str(self.version),
            config_maps={each.name: _stored(each) for each in _config_maps(loaded)},
            nodes=nodes,
            members=[_member(node, number) for number, node in enumerate(nodes) if "etcd" in node.mirror_pods],
            cluster_info_server=f"https://{cluster.control_plane_endpoint}",
            service_ranges=[
                SnapshotServiceRange(name="kubernetes", cidrs=cluster.networking.service_subnet.split(","))
            ],
            addons=SnapshotAddons(
                coredns_image=coredns_image(cluster),
                corefile=str(_data(corefile_object(cluster))["Corefile"]),
                dns_service_ip=cluster.networking.dns_ip,
                kube_proxy_image=kubernetes_image(cluster, "kube-proxy"),
            ),
        )

    def _loaded(self) -> Loaded[InitConfiguration]:
        documents: list[Json] = [
            {
                "apiVersion": "kubeadm.k8s.io/v1beta4",
                "kind": "ClusterConfiguration",
                "kubernetesVersion": str(self.version),
                "controlPlaneEndpoint": ENDPOINT,
                "networking": {"podSubnet": "10.244.0.0/16"},
                **self.cluster,
            },
            {"apiVersion": KUBELET_API, "kind": "KubeletConfiguration", **self.kubelet},
            {"apiVersion": KUBE_PROXY_API, "kind": "KubeProxyConfiguration", **self.kube_proxy},
        ]
        facts = FixedFacts(address="192.0.2.1", sockets=(SOCKET,))
        text = "---\n".join(map(write_yaml, documents))
        return ConfigFile.read(text, file="made-up.yaml", host=facts, options=ReadOptions()).init()

    def _node(self, loaded: Loaded[InitConfiguration], name: str, number: int) -> SnapshotNode:
        cluster, address = loaded.config.cluster, f"192.0.2.{number}" if number < 250 else f"198.51.100.{number % 250}"
        is_control_plane = name in self.control_planes
        manifests = self._manifests(cluster, name, address) if is_control_plane else {}
        host = NodeHost(hostname=name)
        registration = NodeRegistration(name=name, cri_socket=SOCKET)
        written = config_file(loaded.components.kubelet.printed(cluster.facts), cluster, registration, host)
        seen = {
            "manifests": manifests,
            "kubelet_config": written.content.decode(),
            "kubelet_flags": flags_file(()).content.decode(),
            "instance_config": instance_config_file(registration).content.decode(),
            "host_paths": {},
            "ca_directories": [],
        }
        return SnapshotNode(
            name=name,
            is_control_plane=is_control_plane,
            addresses=[NodeAddress(type="InternalIP", address=address), NodeAddress(type="Hostname", address=name)],
            kubelet_version=str(self.version),
            os="Debian GNU/Linux 12 (bookworm)",
            kernel="6.1.0",
            container_runtime="containerd://2.1.4",
            endpoint=NodeEndpoint(advertise_address=address) if is_control_plane else None,
            settings=NodeSettings(cri_socket=SOCKET, pod_cidrs=[f"10.244.{number % 256}.0/24"]),
            capacity={"cpu": "8", "memory": "16Gi", "pods": "110"},
            allocatable={"cpu": "8", "memory": "15Gi", "pods": "110"},
            pods=PodCounts(count=self.pods.get(name, 8), requests={"cpu": "1", "memory": "1Gi"}),
            mirror_pods={component: _mirrored(text) for component, text in manifests.items()},
            **(seen if self.is_seen else {}),  # type: ignore[arg-type]
        )

    def _manifests(self, cluster: ClusterConfiguration, name: str, address: str) -> dict[str, str]:
        node = ControlPlaneNode(
            cluster=cluster,
            name=name,
            endpoint=ApiEndpoint(advertise_address=address),
            host=NodeHost(hostname=name),
        )
        pods = [control_plane_pod(each, node) for each in CONTROL_PLANE]
        if isinstance(cluster.etcd, LocalEtcd):
            pods.append(etcd_pod(node, self._initial_cluster(name)))
        return {pod.name: self._changed(name, pod) for pod in pods}

    def _initial_cluster(self, name: str) -> str:
        """Return the members that a node joined; nothing for the first one."""
        joined = self.control_planes[: self.control_planes.index(name) + 1]
        urls = [f"{each}=https://192.0.2.{number}:2380" for number, each in enumerate(joined, start=1)]
        return ",".join(urls) if len(urls) > 1 else ""

    def _changed(self, name: str, pod: StaticPod) -> str:
        text = static_pod_file(pod).content.decode()
        return self.change_manifest(name, pod.name, text) if self.change_manifest else text


def _config_maps(loaded: Loaded[InitConfiguration]) -> Sequence[ClusterObject]:
    cluster, components = loaded.config.cluster, loaded.components
    text = cluster_text(as_uploaded(cluster), cluster.facts)
    kubelet, *_ = kubelet_config_objects(components.kubelet.printed(cluster.facts), is_user_supplied=False)
    proxy = configuration_object(
        cluster,
        loaded.config.local_api_endpoint,
        components.kube_proxy.printed(cluster.facts),
        is_user_supplied=False,
    )
    return (config_map("kubeadm-config", "kube-system", {"ClusterConfiguration": text}), kubelet, proxy)


def _stored(each: ClusterObject) -> StoredConfig:
    metadata = each.content["metadata"]
    assert isinstance(metadata, dict)
    return StoredConfig(
        data={key: str(value) for key, value in _data(each).items()},
        resource_version="100",
        annotations=metadata.get("annotations") or {},  # type: ignore[arg-type]
        labels=metadata.get("labels") or {},  # type: ignore[arg-type]
    )


def _data(each: ClusterObject) -> dict[str, Json]:
    data = each.content["data"]
    assert isinstance(data, dict)
    return data


def _mirrored(text: str) -> MirrorPod:
    """Return what the API shows of a static pod with this manifest."""
    document = msgspec.convert(read_yaml(text, source="manifest"), dict)
    container = document["spec"]["containers"][0]
    return MirrorPod(
        image=container["image"],
        command=[*container["command"], *container.get("args", [])],
        variables=[each["name"] for each in container.get("env", [])],
        annotations=document["metadata"].get("annotations", {}),
    )


def _member(node: SnapshotNode, number: int) -> SnapshotMember:
    address = node.addresses[0].address
    return SnapshotMember(
        name=node.name,
        member_id=f"{number + 1:016x}",
        peer_urls=[f"https://{address}:2380"],
        client_urls=[f"https://{address}:2379"],
        node=node.name,
        version="3.6.8",
        revision=1000,
    )


def f1(**given: object) -> ClusterSnapshot:
    """One control plane and two workers, stacked etcd, a DNS name as endpoint."""
    return MadeUpCluster(**given).snapshot()  # type: ignore[arg-type]


def f2(**given: object) -> ClusterSnapshot:
    """Three control planes, of which two have joined, and three workers; stacked etcd, a load balancer."""
    names = {"control_planes": ("cp1", "cp2", "cp3"), "workers": ("w1", "w2", "w3")}
    return MadeUpCluster(**{**names, **given}).snapshot()  # type: ignore[arg-type]


def f3(**given: object) -> ClusterSnapshot:
    """Three control planes with an external etcd."""
    external: Json = {
        "endpoints": ["https://198.51.100.1:2379", "https://198.51.100.2:2379"],
        "caFile": "/etc/kubernetes/pki/etcd-ca.crt",
        "certFile": "/etc/kubernetes/pki/apiserver-etcd-client.crt",
        "keyFile": "/etc/kubernetes/pki/apiserver-etcd-client.key",
    }
    names = {"control_planes": ("cp1", "cp2", "cp3"), "workers": (), "cluster": {"etcd": {"external": external}}}
    return MadeUpCluster(**{**names, **given}).snapshot()  # type: ignore[arg-type]


def f4(**given: object) -> ClusterSnapshot:
    """F1 with `--profiling=false` typed into the manifest of the API server by hand."""

    def typed(_node: str, component: str, text: str) -> str:
        old = "    - --secure-port=6443\n"
        return text.replace(old, f"{old}    - --profiling=false\n") if component == "kube-apiserver" else text

    return f1(**{"change_manifest": typed, **given})
