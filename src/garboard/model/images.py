"""The container images of a control-plane node, in the order in which kubeadm lists them."""

import re

from garboard.model.cluster import DEFAULT_IMAGE_REPOSITORY, ClusterConfiguration
from garboard.model.component import LocalEtcd


def kubernetes_image(cluster: ClusterConfiguration, name: str) -> str:
    """Return the image of a component that is built from the main Kubernetes repository."""
    tag = re.sub(r"[^-\w.]", "_", cluster.kubernetes_version, flags=re.ASCII)
    return f"{cluster.control_plane_image_repository}/{name}:{tag}"


def etcd_image(cluster: ClusterConfiguration) -> str:
    """Return the image of a local etcd member; of an external etcd we would not know."""
    local = cluster.etcd if isinstance(cluster.etcd, LocalEtcd) else LocalEtcd()
    repository = local.image_repository or cluster.image_repository
    return f"{repository}/etcd:{local.image_tag or cluster.facts.etcd_tag}"


def coredns_image(cluster: ClusterConfiguration) -> str:
    repository = cluster.dns.image_repository or cluster.image_repository
    if repository == DEFAULT_IMAGE_REPOSITORY:
        repository += "/coredns"  # the official image moved there; mirrors kept it where it was
    return f"{repository}/coredns:{cluster.dns.image_tag or cluster.facts.coredns_tag}"


def pause_image(cluster: ClusterConfiguration) -> str:
    return f"{cluster.image_repository}/pause:{cluster.facts.pause_tag}"


def control_plane_images(cluster: ClusterConfiguration) -> tuple[str, ...]:
    """Return every image that a control-plane node of this cluster needs."""
    names = ["kube-apiserver", "kube-controller-manager", "kube-scheduler"]
    if not cluster.is_proxy_disabled:
        names.append("kube-proxy")
    images = [kubernetes_image(cluster, name) for name in names]
    if not cluster.dns.disabled:
        images.append(coredns_image(cluster))
    images.append(pause_image(cluster))
    if isinstance(cluster.etcd, LocalEtcd):
        images.append(etcd_image(cluster))
    return tuple(images)
