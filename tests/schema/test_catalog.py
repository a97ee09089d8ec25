import pytest

from garboard.errors import InvalidValue
from garboard.model import SUPPORTED_VERSIONS, KubernetesVersion
from garboard.schema import Schema, load_schema

V136, V137 = SUPPORTED_VERSIONS


@pytest.fixture(scope="module")
def schema() -> Schema:
    return load_schema(V137)


def test_any_patch_release_uses_the_data_of_its_minor_read_once() -> None:
    assert load_schema(KubernetesVersion(1, 36, 0)) is load_schema(V136)


def test_minor_without_data_is_refused() -> None:
    with pytest.raises(InvalidValue, match=r"1\.20 is not supported"):
        load_schema(KubernetesVersion(1, 20))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param("Deployment", "apps/v1 Deployment", id="stable before beta"),
        pytest.param("deployment", "apps/v1 Deployment", id="case does not matter"),
        pytest.param("apps/v1 Deployment", "apps/v1 Deployment", id="with a space"),
        pytest.param("apps/v1/Deployment", "apps/v1 Deployment", id="with a slash"),
        pytest.param("extensions/v1beta1/Deployment", "extensions/v1beta1 Deployment", id="the version asked for"),
        pytest.param("v1 Pod", "v1 Pod", id="core with a version"),
        pytest.param("Event", "v1 Event", id="core before other groups"),
        pytest.param("HorizontalPodAutoscaler", "autoscaling/v2 HorizontalPodAutoscaler", id="newest stable"),
        pytest.param("Ingress", "networking.k8s.io/v1 Ingress", id="extensions last"),
        pytest.param("KubeletConfiguration", "kubelet.config.k8s.io/v1beta1 KubeletConfiguration", id="component"),
        pytest.param("CustomResourceDefinition", "apiextensions.k8s.io/v1 CustomResourceDefinition", id="crd"),
    ],
)
def test_kind_is_found_as_people_write_it(schema: Schema, text: str, found: str) -> None:
    assert str(schema.find_kind(text)) == found


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        pytest.param("Deploymnt", "apps/v1 Deployment", id="a slip names the real kind"),
        pytest.param("apps/v2 Deployment", "there is apps/v1 Deployment", id="a wrong version names the real ones"),
        pytest.param("ClusterThing", "custom resources have no type here", id="nothing near"),
        pytest.param("", "custom resources have no type here", id="empty"),
    ],
)
def test_unknown_kind_is_refused_with_a_way_out(schema: Schema, text: str, hint: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        schema.find_kind(text)
    assert hint in str(refused.value.hint)
    assert refused.value.error_class == "unsupported-kind"


def test_kubeadm_versions_follow_the_minor() -> None:
    def versions(schema: Schema) -> set[str]:
        return {kind.api_version for kind in schema.kinds() if kind.name == "ClusterConfiguration"}

    assert versions(load_schema(V136)) == {"kubeadm.k8s.io/v1beta3", "kubeadm.k8s.io/v1beta4"}
    assert versions(load_schema(V137)) == {"kubeadm.k8s.io/v1beta4", "kubeadm.k8s.io/v1"}


def test_custom_resource_has_no_type(schema: Schema) -> None:
    assert schema.type_of("example.com/v1", "Widget") is None
