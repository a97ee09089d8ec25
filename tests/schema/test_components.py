"""Flags and feature gates of both minors against facts observed on the programs themselves."""

import pytest

from garboard.model import SUPPORTED_VERSIONS
from garboard.schema import Component, load_schema

V136, V137 = map(load_schema, SUPPORTED_VERSIONS)
COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet", "etcd")


def both(name: str) -> tuple[Component, Component]:
    older, newer = V136.component(name), V137.component(name)
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
    assert V137.flags("kube-dns") is None
    assert V137.feature_gates("kube-dns") is None


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
