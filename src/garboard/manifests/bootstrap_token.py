"""What lets nodes join: bootstrap tokens, their RBAC, and the public ConfigMap cluster-info."""

import base64
from datetime import UTC, datetime

from garboard.documents import Json, write_yaml
from garboard.manifests.objects import (
    BOOTSTRAP_GROUP,
    KUBE_PUBLIC,
    KUBE_SYSTEM,
    NODES_GROUP,
    ClusterObject,
    binding,
    config_map,
    group,
    new_object,
    readable_by,
    role,
    rule,
    user,
)
from garboard.manifests.sources import cluster_field
from garboard.model.lifecycle import BootstrapToken
from garboard.schema.times import canonical_time

CLUSTER_INFO = "cluster-info"
_CSR_ROLES = "system:certificates.k8s.io:certificatesigningrequests"


def token_secret(token: BootstrapToken, now: datetime) -> ClusterObject:
    """Return the Secret of a token; a token with a TTL expires that long after `now`."""
    data = {"token-id": token.token_id, "token-secret": token.token_secret}
    if token.description:
        data["description"] = token.description
    if expiration := _expiration(token, now):
        data["expiration"] = expiration
    data |= {f"usage-bootstrap-{usage}": "true" for usage in token.usages}
    if token.groups:
        data["auth-extra-groups"] = ",".join(token.groups)
    return new_object(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": f"bootstrap-token-{token.token_id}", "namespace": KUBE_SYSTEM},
            "type": "bootstrap.kubernetes.io/token",
            "data": {key: base64.b64encode(value.encode()).decode() for key, value in data.items()},
        }
    )


def _expiration(token: BootstrapToken, now: datetime) -> str:
    """Return when a token expires, as text; empty for one that never does."""
    if token.expires:
        return canonical_time(token.expires) or ""
    if token.ttl is None or token.ttl.nanoseconds <= 0:
        return ""
    return (now + token.ttl.as_timedelta).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def bootstrap_rbac() -> tuple[ClusterObject, ...]:
    """Return the RBAC of bootstrap tokens, of certificate requests of nodes, and of the API server at kubelets."""
    tokens, nodes = (group(BOOTSTRAP_GROUP),), (group(NODES_GROUP),)
    return (
        role("kubeadm:get-nodes", [rule(["nodes"], ["get"])]),
        binding("kubeadm:get-nodes", "kubeadm:get-nodes", tokens),
        binding("kubeadm:kubelet-bootstrap", "system:node-bootstrapper", tokens),
        binding("kubeadm:node-autoapprove-bootstrap", f"{_CSR_ROLES}:nodeclient", tokens),
        binding("kubeadm:node-autoapprove-certificate-rotation", f"{_CSR_ROLES}:selfnodeclient", nodes),
        binding(
            "kubeadm:apiserver-kubelet-client", "system:kubelet-api-admin", (user("kube-apiserver-kubelet-client"),)
        ),
    )


def cluster_info_objects(cluster: dict[str, Json]) -> tuple[ClusterObject, ...]:
    """Return the ConfigMap cluster-info with its RBAC; `cluster` is the cluster of admin.conf, its CA embedded."""
    kubeconfig: Json = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "", "cluster": cluster}],
        "contexts": None,
        "current-context": "",
        "users": None,
    }
    public = config_map(
        CLUSTER_INFO,
        KUBE_PUBLIC,
        {"kubeconfig": write_yaml(kubeconfig)},
        sources={"kubeconfig": cluster_field("controlPlaneEndpoint")},
    )
    anonymous = (user("system:anonymous"),)
    return (public, *readable_by("kubeadm:bootstrap-signer-clusterinfo", KUBE_PUBLIC, CLUSTER_INFO, anonymous))
