"""The names are those that kubeadm prints."""

import pytest

from garboard.model.cluster import ClusterConfiguration, control_plane_images, tag_of
from garboard.model.component import Dns, ExternalEtcd, LocalEtcd


def test_images_of_the_default_cluster() -> None:
    assert control_plane_images(ClusterConfiguration(kubernetes_version="v1.36.4")) == (
        "registry.k8s.io/kube-apiserver:v1.36.4",
        "registry.k8s.io/kube-controller-manager:v1.36.4",
        "registry.k8s.io/kube-scheduler:v1.36.4",
        "registry.k8s.io/kube-proxy:v1.36.4",
        "registry.k8s.io/coredns/coredns:v1.14.2",
        "registry.k8s.io/pause:3.10.2",
        "registry.k8s.io/etcd:3.6.8-0",
    )


def test_a_mirror_keeps_coredns_where_it_was() -> None:
    images = control_plane_images(ClusterConfiguration(image_repository="example.com/k8s"))
    assert "example.com/k8s/coredns:v1.14.6" in images


def test_what_is_not_deployed_is_not_listed() -> None:
    cluster = ClusterConfiguration(
        dns=Dns(disabled=True), is_proxy_disabled=True, etcd=ExternalEtcd(endpoints=("https://a:1",))
    )
    names = [image.partition(":")[0].rpartition("/")[2] for image in control_plane_images(cluster)]
    assert names == ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "pause"]


def test_etcd_may_come_from_elsewhere() -> None:
    etcd = LocalEtcd(image_repository="example.com/db", image_tag="9")
    assert control_plane_images(ClusterConfiguration(etcd=etcd))[-1] == "example.com/db/etcd:9"


def test_a_build_suffix_becomes_a_valid_tag() -> None:
    cluster = ClusterConfiguration(kubernetes_version="v1.37.0-alpha.1+abc")
    assert control_plane_images(cluster)[0].endswith(":v1.37.0-alpha.1_abc")


@pytest.mark.parametrize(
    ("image", "tag"),
    [
        ("registry.k8s.io/etcd:3.7.0-0", "3.7.0-0"),
        ("registry.k8s.io/etcd:3.7.0-0@sha256:9999", "3.7.0-0"),
        ("mirror.example:5000/etcd", ""),
        ("mirror.example:5000/etcd:3.7.0-0", "3.7.0-0"),
        ("etcd@sha256:9999", ""),
        ("", ""),
    ],
)
def test_tag_of_an_image_is_neither_its_digest_nor_a_port(image: str, tag: str) -> None:
    assert tag_of(image) == tag
