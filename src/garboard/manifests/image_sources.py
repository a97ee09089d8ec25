"""Which field decides a component's image."""

from garboard.manifests.sources import Source, cluster_field
from garboard.model.cluster import DEFAULT_IMAGE_REPOSITORY, ClusterConfiguration
from garboard.model.component import LocalEtcd


def kubernetes_image_source(cluster: ClusterConfiguration) -> Source:
    """The repository, if it is not the usual one; otherwise the version, which is the tag."""
    is_usual = cluster.image_repository == DEFAULT_IMAGE_REPOSITORY
    return cluster_field("kubernetesVersion" if is_usual else "imageRepository")


def etcd_image_source(cluster: ClusterConfiguration, local: LocalEtcd) -> Source | None:
    if local.image_tag:
        return cluster_field("etcd", "local", "imageTag")
    if local.image_repository:
        return cluster_field("etcd", "local", "imageRepository")
    return cluster_field("imageRepository") if cluster.image_repository != DEFAULT_IMAGE_REPOSITORY else None


def dns_image_source(cluster: ClusterConfiguration) -> Source | None:
    if cluster.dns.image_tag:
        return cluster_field("dns", "imageTag")
    if cluster.dns.image_repository:
        return cluster_field("dns", "imageRepository")
    return cluster_field("imageRepository") if cluster.image_repository != DEFAULT_IMAGE_REPOSITORY else None
