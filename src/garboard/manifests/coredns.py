"""The CoreDNS addon."""

import re

from garboard.documents import Json, read_yaml
from garboard.manifests.objects import (
    KUBE_SYSTEM,
    ClusterObject,
    Patcher,
    account,
    binding,
    config_map,
    encoded,
    new_object,
    role,
    rule,
    service_account,
    unpatched,
)
from garboard.manifests.sources import cluster_field, dns_image_source
from garboard.model.cluster import ClusterConfiguration, coredns_image
from garboard.model.node import CONTROL_PLANE_TAINT

PATCH_TARGET = "corednsdeployment"
DEFAULT_REPLICAS = 2

_NAME, _ROLE = "coredns", "system:coredns"
_LABELS = {"k8s-app": "kube-dns"}
_METRICS_PORT = 9153
_COREFILE = """\
.:53 {
    errors
    health {
       lameduck 5s
    }
    ready
    kubernetes DOMAIN in-addr.arpa ip6.arpa {
       pods insecure
       fallthrough in-addr.arpa ip6.arpa
       ttl 30
    }
    prometheus :9153
    forward . /etc/resolv.conf {
       max_concurrent 1000
    }
    cache 30 {
       disable success DOMAIN
       disable denial DOMAIN
    }
    loop
    reload
    loadbalance
}
"""


def coredns_objects(
    cluster: ClusterConfiguration, *, replicas: int = DEFAULT_REPLICAS, patcher: Patcher = unpatched
) -> tuple[ClusterObject, ...]:
    """Return the addon's objects in kubeadm's order; `replicas` are those of a Deployment that is there already."""
    watch = ["list", "watch"]
    rules = [
        rule(["endpoints", "services", "pods", "namespaces"], watch),
        rule(["endpointslices"], watch, api_group="discovery.k8s.io"),
    ]
    return (
        corefile_object(cluster),
        role(_ROLE, rules),
        binding(_ROLE, _ROLE, (account(_NAME),)),
        service_account(_NAME),
        deployment(cluster, replicas=replicas, patcher=patcher),
        dns_service(cluster),
    )


def corefile_object(cluster: ClusterConfiguration) -> ClusterObject:
    domain = cluster.networking.dns_domain
    return config_map(
        _NAME,
        KUBE_SYSTEM,
        {"Corefile": _COREFILE.replace("DOMAIN", domain)},
        sources={"Corefile": cluster_field("networking", "dnsDomain")},
    )


def is_own_corefile(text: str) -> bool:
    """Return whether a Corefile is the one that is rendered here, for any domain."""
    domain = re.search(r"kubernetes (\S+) in-addr", text)
    return domain is not None and text == _COREFILE.replace("DOMAIN", domain[1])


def deployment(
    cluster: ClusterConfiguration, *, replicas: int = DEFAULT_REPLICAS, patcher: Patcher = unpatched
) -> ClusterObject:
    document: Json = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": _NAME, "namespace": KUBE_SYSTEM, "labels": dict(_LABELS)},
        "spec": {
            "replicas": replicas,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
            "selector": {"matchLabels": dict(_LABELS)},
            "template": {"metadata": {"labels": dict(_LABELS)}, "spec": _pod_spec(cluster)},
        },
    }
    content = encoded(patcher(PATCH_TARGET, document), cluster.release)
    image_source = dns_image_source(cluster)
    image_path = ("spec", "template", "spec", "containers", 0, "image")
    return new_object(content, {image_path: image_source} if image_source else {})


def _pod_spec(cluster: ClusterConfiguration) -> Json:
    own_label: Json = {"key": "k8s-app", "operator": "In", "values": ["kube-dns"]}
    apart: Json = {
        "weight": 100,
        "podAffinityTerm": {
            "labelSelector": {"matchExpressions": [own_label]},
            "topologyKey": "kubernetes.io/hostname",
        },
    }
    return {
        "priorityClassName": "system-cluster-critical",
        "serviceAccountName": _NAME,
        "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [apart]}},
        "tolerations": [
            {"key": "CriticalAddonsOnly", "operator": "Exists"},
            {"key": CONTROL_PLANE_TAINT.key, "effect": CONTROL_PLANE_TAINT.effect},
        ],
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "containers": [_container(cluster)],
        "dnsPolicy": "Default",
        "volumes": [
            {
                "name": "config-volume",
                "configMap": {"name": _NAME, "items": [{"key": "Corefile", "path": "Corefile"}]},
            }
        ],
    }


def _container(cluster: ClusterConfiguration) -> Json:
    return {
        "name": _NAME,
        "image": _through_template(coredns_image(cluster)),
        "imagePullPolicy": "IfNotPresent",
        "resources": {"limits": {"memory": "170Mi"}, "requests": {"cpu": "100m", "memory": "70Mi"}},
        "args": ["-conf", "/etc/coredns/Corefile"],
        "volumeMounts": [{"name": "config-volume", "mountPath": "/etc/coredns", "readOnly": True}],
        "ports": [
            {"containerPort": 53, "name": "dns", "protocol": "UDP"},
            {"containerPort": 53, "name": "dns-tcp", "protocol": "TCP"},
            {"containerPort": _METRICS_PORT, "name": "metrics", "protocol": "TCP"},
            {"containerPort": 8080, "name": "liveness-probe", "protocol": "TCP"},
            {"containerPort": 8181, "name": "readiness-probe", "protocol": "TCP"},
        ],
        "livenessProbe": {
            "httpGet": {"path": "/health", "port": "liveness-probe", "scheme": "HTTP"},
            "initialDelaySeconds": 60,
            "timeoutSeconds": 5,
            "successThreshold": 1,
            "failureThreshold": 5,
        },
        "readinessProbe": {"httpGet": {"path": "/ready", "port": "readiness-probe", "scheme": "HTTP"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
    }


def _through_template(image: str) -> str:
    """Return an image as it comes out of kubeadm's YAML template, where it stands unquoted: `#` starts a comment."""
    if re.fullmatch(r"[-\w./:@]+", image, re.ASCII):
        return image
    holder = read_yaml(f"image: {image}\n", source="Deployment coredns")
    return str(holder["image"]) if isinstance(holder, dict) and "image" in holder else ""


def dns_service(cluster: ClusterConfiguration) -> ClusterObject:
    """Return the Service of the cluster's DNS; without a resourceVersion it can be created but not updated."""
    labels = {**_LABELS, "kubernetes.io/cluster-service": "true", "kubernetes.io/name": "CoreDNS"}
    content = encoded(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {
                "name": "kube-dns",
                "namespace": KUBE_SYSTEM,
                "labels": dict(labels),
                "annotations": {"prometheus.io/port": str(_METRICS_PORT), "prometheus.io/scrape": "true"},
                "resourceVersion": "0",
            },
            "spec": {
                "clusterIP": cluster.networking.dns_ip,
                "ports": [_port("dns", 53, "UDP"), _port("dns-tcp", 53, "TCP"), _port("metrics", _METRICS_PORT, "TCP")],
                "selector": dict(_LABELS),
            },
        },
        cluster.release,
    )
    return new_object(content, {("spec", "clusterIP"): cluster_field("networking", "serviceSubnet")})


def _port(name: str, number: int, protocol: str) -> Json:
    return {"name": name, "port": number, "protocol": protocol, "targetPort": number}
