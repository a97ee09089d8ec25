"""Kinds as people write them, and flags and feature gates against facts observed on the programs themselves."""

import pytest

from garboard.errors import InvalidValue
from garboard.model import SUPPORTED_VERSIONS, KubernetesVersion
from garboard.schema import ComponentOptions, Schema, load_schema

V136, V137 = SUPPORTED_VERSIONS[:2]
OLDER, NEWER = load_schema(V136), load_schema(V137)
COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet", "etcd")


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


def both(name: str) -> tuple[ComponentOptions, ComponentOptions]:
    older, newer = OLDER.component(name), NEWER.component(name)
    assert older is not None
    assert newer is not None
    return older, newer


def words(text: str) -> set[str]:
    return set(text.split())


@pytest.mark.parametrize("name", COMPONENTS)
def test_component_knows_its_flags_and_gates(name: str) -> None:
    for component in both(name):
        assert len(component.flags) > 50
        assert component.flags["feature-gates"].name == "feature-gates"
        assert component.feature_gates["AllAlpha"].default is False


def test_unknown_component_has_no_flags() -> None:
    assert NEWER.component("kube-dns") is None


@pytest.mark.parametrize(
    ("name", "removed", "added"),
    [
        pytest.param("kube-apiserver", "", None, id="kube-apiserver lost none"),
        pytest.param(
            "kube-controller-manager",
            "concurrent-service-syncs",
            "concurrent-disruption-syncs",
            id="controller manager",
        ),
        pytest.param("kube-scheduler", "", None, id="kube-scheduler lost none"),
        pytest.param("kube-proxy", "boot-id-file machine-id-file", None, id="kube-proxy"),
        pytest.param(
            "kubelet",
            """application-metrics-count-limit boot-id-file container-hints containerd containerd-namespace
            enable-load-reader event-storage-age-limit event-storage-event-limit global-housekeeping-interval
            log-cadvisor-usage machine-id-file storage-driver-buffer-duration storage-driver-db storage-driver-host
            storage-driver-password storage-driver-secure storage-driver-table storage-driver-user""",
            None,
            id="kubelet lost the flags of cAdvisor",
        ),
    ],
)
def test_flags_that_went_and_came_with_1_37(name: str, removed: str, added: str | None) -> None:
    older, newer = both(name)
    assert older.flags.keys() - newer.flags.keys() == words(removed)
    assert added is None or added in newer.flags.keys() - older.flags.keys()


def test_etcd_3_7_dropped_every_experimental_flag_and_v2_discovery() -> None:
    older, newer = both("etcd")
    gone = older.flags.keys() - newer.flags.keys()
    experimental = {name for name in gone if name.startswith("experimental-")}
    assert len(experimental) == 23
    assert gone - experimental == {"discovery", "discovery-proxy"}
    assert older.flags["experimental-memory-mlock"].is_deprecated


@pytest.mark.parametrize("name", ["kube-apiserver", "kube-controller-manager", "kube-scheduler"])
def test_tls_curves_are_a_flag_of_1_36(name: str) -> None:
    assert both(name)[0].flags["tls-curve-preferences"].type == "int32Slice"


GONE_IN_1_36 = """CSIMigrationPortworx HonorPVReclaimPolicy InPlacePodVerticalScalingAllocatedStatus
    InTreePluginPortworxUnregister MemoryManager ServiceTrafficDistribution StructuredAuthorizationConfiguration
    TopologyAwareHints WatchFromStorageWithoutResourceVersion"""
GONE_IN_1_37 = """APIServerTracing AnonymousAuthConfigurableEndpoints AnyVolumeDataSource AuthorizeNodeWithSelectors
    AuthorizeWithSelectors BtreeWatchCache ConsistentListFromCache GangScheduling JobBackoffLimitPerIndex
    JobPodReplacementPolicy JobSuccessPolicy LogarithmicScaleDown OrderedNamespaceDeletion PodLifecycleSleepAction
    PodLifecycleSleepActionAllowZero PreventStaticPodAPIReferences RelaxedDNSSearchValidation
    ResilientWatchCacheInitialization RetryGenerateName SchedulerQueueingHints SidecarContainers
    StreamingCollectionEncodingToJSON StreamingCollectionEncodingToProtobuf StructuredAuthenticationConfiguration
    WorkloadAwarePreemption"""


def test_gates_that_the_api_server_no_longer_knows() -> None:
    older, newer = both("kube-apiserver")
    assert not words(GONE_IN_1_36) & older.feature_gates.keys()
    assert words(GONE_IN_1_37) <= older.feature_gates.keys()
    assert not words(GONE_IN_1_37) & newer.feature_gates.keys()


def test_gate_tells_its_stage_and_default() -> None:
    older, newer = both("kubelet")
    assert older.feature_gates["SidecarContainers"].stage == "ga"
    assert older.feature_gates["SidecarContainers"].is_locked
    assert newer.feature_gates["MemoryQoS"].default


def test_admission_plugins_follow_the_minor() -> None:
    older, newer = both("kube-apiserver")
    gone = older.choices["enable-admission-plugins"] - newer.choices["enable-admission-plugins"]
    assert gone == {"JobValidation", "PodGroupWorkloadExists"}


def test_controllers_follow_the_minor() -> None:
    older, newer = both("kube-controller-manager")
    gone = {"cloud-node-lifecycle-controller", "node-route-controller", "service-lb-controller"}
    assert gone <= older.choices["controllers"] - newer.choices["controllers"]


def test_hidden_and_deprecated_flags_are_there_and_marked() -> None:
    flag = both("kube-apiserver")[0].flags["apiserver-count"]
    assert flag.is_hidden
    assert flag.is_deprecated
