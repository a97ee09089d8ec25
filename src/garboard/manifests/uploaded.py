"""What a cluster keeps of its configuration, and who may read it."""

import base64
from collections.abc import Mapping
from dataclasses import replace

from garboard.documents import Json, marshal_yaml
from garboard.manifests.objects import (
    BOOTSTRAP_GROUP,
    KUBE_SYSTEM,
    NODES_GROUP,
    ClusterObject,
    binding,
    config_map,
    group,
    new_object,
    readable_by,
)
from garboard.manifests.sources import ConfigField, cluster_field
from garboard.model.cluster import ClusterConfiguration
from garboard.model.duration import Duration
from garboard.model.lifecycle import BootstrapToken

KUBEADM_CONFIG, KUBELET_CONFIG, KUBEADM_CERTS = "kubeadm-config", "kubelet-config", "kubeadm-certs"
KUBE_PROXY_CONFIG = "kube-proxy"
# The ConfigMaps that hold the configuration of a cluster, each with the key of its document.
CONFIG_KEYS: Mapping[str, str] = {
    KUBEADM_CONFIG: "ClusterConfiguration",
    KUBELET_CONFIG: "kubelet",
    KUBE_PROXY_CONFIG: "config.conf",
}
CLUSTER_ADMINS = "kubeadm:cluster-admins"
CERTIFICATES_TTL = Duration.of(hours=2)


def as_uploaded(cluster: ClusterConfiguration) -> ClusterConfiguration:
    """Return the configuration to print for the cluster: a version that came from CI is stored as such."""
    return replace(cluster, kubernetes_version=cluster.ci_kubernetes_version or cluster.kubernetes_version)


def kubeadm_config_objects(cluster_text: str) -> tuple[ClusterObject, ...]:
    """Return the ConfigMap kubeadm-config with its RBAC; `cluster_text` is `as_uploaded`, printed.

    kubeadm changes this one key of an existing ConfigMap and leaves others alone.
    """
    stored = config_map(
        KUBEADM_CONFIG,
        KUBE_SYSTEM,
        {"ClusterConfiguration": cluster_text},
        sources={"ClusterConfiguration": cluster_field()},
    )
    subjects = (group(BOOTSTRAP_GROUP), group(NODES_GROUP))
    return (stored, *readable_by("kubeadm:nodes-kubeadm-config", KUBE_SYSTEM, KUBEADM_CONFIG, subjects))


def kubelet_config_objects(configuration: Json, *, is_user_supplied: bool) -> tuple[ClusterObject, ...]:
    """Return the ConfigMap kubelet-config with its RBAC; a configuration that no user wrote carries a hash."""
    stored = config_map(
        KUBELET_CONFIG,
        KUBE_SYSTEM,
        {"kubelet": marshal_yaml(configuration, source=KUBELET_CONFIG)},
        is_signed=not is_user_supplied,
        sources={"kubelet": ConfigField("KubeletConfiguration", ())},
    )
    subjects = (group(NODES_GROUP), group(BOOTSTRAP_GROUP))
    return (stored, *readable_by("kubeadm:kubelet-config", KUBE_SYSTEM, KUBELET_CONFIG, subjects))


def certificates_token(token: str) -> BootstrapToken:
    """Return a token without usages: its Secret owns that of the sealed certificates, which is deleted with it."""
    description = "Proxy for managing TTL for the kubeadm-certs secret"
    return BootstrapToken(token=token, description=description, ttl=CERTIFICATES_TTL, usages=(), groups=())


def kubeadm_certs_secret(sealed: Mapping[str, bytes], owner: str, owner_uid: str) -> ClusterObject:
    """Return the Secret with the sealed certificates by name (`ca.crt`, …); `owner` is that of its token."""
    reference: Json = {
        "apiVersion": "v1",
        "kind": "Secret",
        "name": owner,
        "uid": owner_uid,
        "blockOwnerDeletion": True,
        "controller": True,
    }
    return new_object(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": KUBEADM_CERTS, "namespace": KUBE_SYSTEM, "ownerReferences": [reference]},
            "data": {name: base64.b64encode(data).decode() for name, data in sealed.items()},
        }
    )


def kubeadm_certs_rbac() -> tuple[ClusterObject, ...]:
    """Return the RBAC of the Secret that holds the sealed certificates for further control-plane nodes."""
    return readable_by("kubeadm:kubeadm-certs", KUBE_SYSTEM, KUBEADM_CERTS, (group(BOOTSTRAP_GROUP),), "secrets")


def cluster_admins_binding() -> ClusterObject:
    """Return the binding that makes the user of admin.conf an administrator."""
    return binding(CLUSTER_ADMINS, "cluster-admin", (group(CLUSTER_ADMINS),))
