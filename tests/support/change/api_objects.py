"""The objects that an API server shows of a cluster, made from its snapshot; and a fake API server that pages lists."""

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

import msgspec

from garboard.change.snapshot import ClusterSnapshot, SnapshotNode
from garboard.documents import read_yaml
from tests.support.kube.api_server import FakeApi

SYSTEM = "/api/v1/namespaces/kube-system"
NODES, PODS, SERVICES = "/api/v1/nodes", "/api/v1/pods", "/api/v1/services"
RANGES = "/apis/networking.k8s.io/v1/servicecidrs"
CLUSTER_INFO = "/api/v1/namespaces/kube-public/configmaps/cluster-info"
PROXY = "/apis/apps/v1/namespaces/kube-system/daemonsets/kube-proxy"
DNS = "/apis/apps/v1/namespaces/kube-system/deployments/coredns"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
SECRET = "s3cr3t-of-somebody"


@dataclass
class PagedApi(FakeApi):
    """Answers lists in pages, as a real API server does; `pages` counts them."""

    pages: int = 0

    def answer(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, bytes]:
        status, data = super().answer(method, path, body)
        document = json.loads(data)
        query = parse_qs(path.partition("?")[2])
        if status != 200 or "limit" not in query:
            return status, data
        self.pages += 1
        start, size = int(query.get("continue", ["0"])[0]), int(query["limit"][0])
        rest = len(document["items"]) - start - size
        page = {"items": document["items"][start : start + size], "metadata": {}}
        if rest > 0:
            page["metadata"] = {"continue": str(start + size), "remainingItemCount": rest}
        return 200, json.dumps(page).encode()


def stored_objects(snapshot: ClusterSnapshot) -> dict[str, dict[str, Any]]:
    """Return the objects of a cluster by their path; lists over all namespaces as objects with items."""
    objects = {
        f"{SYSTEM}/configmaps/{name}": {
            "metadata": {
                "name": name,
                "resourceVersion": stored.resource_version,
                "annotations": stored.annotations,
                "labels": stored.labels,
            },
            "data": stored.data,
        }
        for name, stored in snapshot.config_maps.items()
    }
    addons = snapshot.addons
    dns = {"metadata": {"namespace": "kube-system", "name": "kube-dns"}, "spec": {"clusterIP": addons.dns_service_ip}}
    return {
        **objects,
        f"{SYSTEM}/configmaps/coredns": {"metadata": {"name": "coredns"}, "data": {"Corefile": addons.corefile}},
        CLUSTER_INFO: {"data": {"kubeconfig": _kubeconfig(snapshot.cluster_info_server), "jws-kubeconfig-x": SECRET}},
        NODES: {"items": [_node(each) for each in snapshot.nodes]},
        PODS: {"items": [pod for each in snapshot.nodes for pod in _pods(each)]},
        SERVICES: {"items": [dns, *({"metadata": {"namespace": each.namespace, "name": each.name},
                                     "spec": {"ports": [{"nodePort": port} for port in each.node_ports]}}
                                    for each in snapshot.services)]},
        RANGES: {"items": [{"metadata": {"name": each.name}, "spec": {"cidrs": each.cidrs}}
                           for each in snapshot.service_ranges]},
        PROXY: _workload(addons.kube_proxy_image),
        DNS: _workload(addons.coredns_image),
        LEASES: {"items": []},
    }  # fmt: skip


def _kubeconfig(server: str) -> str:
    return json.dumps({"kind": "Config", "clusters": [{"name": "", "cluster": {"server": server}}]})


def _workload(image: str) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}}


def _node(node: SnapshotNode) -> dict[str, Any]:
    labels = {"node-role.kubernetes.io/control-plane": ""} if node.is_control_plane else {}
    return {
        "metadata": {
            "name": node.name,
            "labels": {**labels, **node.labels},
            "annotations": {
                "kubeadm.alpha.kubernetes.io/cri-socket": node.settings.cri_socket,
                "example.com/password": SECRET,
            },
        },
        "spec": {"podCIDRs": node.settings.pod_cidrs},
        "status": {
            "addresses": [{"type": each.type, "address": each.address} for each in node.addresses],
            "conditions": [{"type": "Ready", "status": "True" if node.is_ready else "False"}],
            "capacity": node.capacity,
            "allocatable": node.allocatable,
            "images": [{"names": ["registry.k8s.io/pause"]}],
            "nodeInfo": {
                "kubeletVersion": node.kubelet_version,
                "osImage": node.os,
                "kernelVersion": node.kernel,
                "containerRuntimeVersion": node.container_runtime,
            },
        },
    }


def _pods(node: SnapshotNode) -> list[dict[str, Any]]:
    """Return the static pods of a node, and others up to its count; the last of them has all that it requests."""
    static = [_static_pod(node, component) for component in node.mirror_pods]
    assert node.pods is not None
    others = [_pod(node, number) for number in range(node.pods.count - len(static))]
    if others:
        others[-1]["spec"]["containers"][0]["resources"] = {"requests": node.pods.requests}
    ended = _pod(node, 99)
    ended["status"]["phase"] = "Succeeded"
    return [*static, *others, ended]


def _pod(node: SnapshotNode, number: int) -> dict[str, Any]:
    return {
        "metadata": {"namespace": "default", "name": f"pod-{node.name}-{number}", "labels": {"component": "web"}},
        "spec": {
            "nodeName": node.name,
            "containers": [{"name": "main", "env": [{"name": "PASSWORD", "value": SECRET}]}],
        },
        "status": {"phase": "Running"},
    }


def _static_pod(node: SnapshotNode, component: str) -> dict[str, Any]:
    if node.manifests:
        return _mirrored(node, component)
    found = node.mirror_pods[component]
    container = {
        "name": component,
        "image": found.image,
        "command": found.command,
        "env": [{"name": name, "value": SECRET} for name in found.variables],
    }
    return {
        "metadata": {
            "namespace": "kube-system",
            "name": f"{component}-{node.name}",
            "labels": {"component": component, "tier": "control-plane"},
            "annotations": {**found.annotations, "kubernetes.io/config.mirror": "x", "example.com/note": SECRET},
        },
        "spec": {"nodeName": node.name, "containers": [container]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


def _mirrored(node: SnapshotNode, component: str) -> dict[str, Any]:
    """Return the mirror of a static pod whose manifest is known, with what a kubelet and the API server add."""
    assert node.manifests is not None
    document = msgspec.convert(read_yaml(node.manifests[component], source=component), dict)
    metadata, spec = document["metadata"], document["spec"]
    return {
        **document,
        "metadata": {
            **metadata,
            "name": f"{component}-{node.name}",
            "uid": "1",
            "annotations": {**metadata.get("annotations", {}), "kubernetes.io/config.mirror": "x"},
        },
        "spec": {**spec, "nodeName": node.name, "restartPolicy": "Always", "dnsPolicy": "ClusterFirst"},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }
