from datetime import UTC, datetime

from garboard.manifests.bootstrap_token import bootstrap_rbac, cluster_info_objects, token_secret
from garboard.manifests.coredns import coredns_objects
from garboard.manifests.kube_proxy import kube_proxy_objects
from garboard.manifests.objects import CONFIG_HASH_ANNOTATION, ClusterObject, config_map, data_hash
from garboard.manifests.uploaded import (
    certificates_token,
    cluster_admins_binding,
    kubeadm_certs_rbac,
    kubeadm_certs_secret,
    kubeadm_config_objects,
    kubelet_config_objects,
)
from garboard.model.cluster import ClusterConfiguration
from garboard.model.component import Dns
from garboard.model.node import ApiEndpoint

CLUSTER = ClusterConfiguration(dns=Dns(image_tag="v9"))


def addons() -> tuple[ClusterObject, ...]:
    endpoint = ApiEndpoint(advertise_address="192.0.2.1")
    proxy = kube_proxy_objects(CLUSTER, endpoint, {}, is_user_supplied=False, environment={"NO_PROXY": "x"})
    return (*coredns_objects(CLUSTER), *proxy)


def test_the_hash_is_over_the_values_in_the_order_of_their_keys() -> None:
    # printf 12 | sha256sum
    assert data_hash({"b": "2", "a": "1"}) == "sha256:6b51d431df5d7f141cbececcf79edf3dd861c3b4069f0b11661a3eefacbba918"


def test_only_configuration_that_nobody_wrote_is_signed() -> None:
    (generated, *_), (written, *_) = (
        kubelet_config_objects({"maxPods": 1}, is_user_supplied=each) for each in (False, True)
    )
    assert CONFIG_HASH_ANNOTATION in str(generated.content["metadata"])
    assert CONFIG_HASH_ANNOTATION not in str(written.content["metadata"])
    assert generated.content["data"] == written.content["data"] == {"kubelet": "maxPods: 1\n"}


def test_objects_are_named_by_their_content() -> None:
    found = config_map("a", "b", {})
    assert (found.api_version, found.kind, found.namespace, found.name) == ("v1", "ConfigMap", "b", "a")
    assert cluster_admins_binding().namespace == ""
    for each in (
        *addons(),
        *bootstrap_rbac(),
        *cluster_info_objects({}),
        *kubeadm_config_objects(""),
        *kubelet_config_objects({}, is_user_supplied=False),
        *kubeadm_certs_rbac(),
        kubeadm_certs_secret({}, "owner", ""),
        token_secret(certificates_token("abcdef.0123456789abcdef"), datetime.fromtimestamp(0, UTC)),
        cluster_admins_binding(),
    ):
        metadata = each.content["metadata"]
        assert isinstance(metadata, dict)
        assert (each.api_version, each.kind) == (each.content["apiVersion"], each.content["kind"])
        assert (each.namespace, each.name) == (metadata.get("namespace", ""), metadata["name"])


def test_addon_objects_tell_what_decides_them() -> None:
    by_name = {f"{each.kind} {each.name}": each.sources for each in addons()}
    container = ("spec", "template", "spec", "containers", 0)
    assert str(by_name["Deployment coredns"].of((*container, "image"))) == "dns.imageTag"
    assert str(by_name["Service kube-dns"].of(("spec", "clusterIP"))) == "networking.serviceSubnet"
    assert str(by_name["ConfigMap coredns"].of(("data", "Corefile"))) == "networking.dnsDomain"
    assert str(by_name["DaemonSet kube-proxy"].of((*container, "env", 1, "value"))) == "environment variable NO_PROXY"
    assert by_name["DaemonSet kube-proxy"].of((*container, "env", 0, "name")) is None
