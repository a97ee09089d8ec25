"""Everything that depends on the Kubernetes minor, as one row per minor; docs/adding-a-minor.md says how to add one.

Behaviour follows the kubeadm that is emulated: that of the minor in `kubernetesVersion`, at its reference patch. No
other module compares versions with a minor or has a table by minor: what differs is a field of the row.
"""

from collections.abc import Mapping
from typing import Literal

from garboard.errors import InvalidValue
from garboard.model.version import KubernetesVersion, Minor
from garboard.values import dataclass

Stage = Literal["ALPHA", "BETA", "GA", "DEPRECATED"]

# kubeadm ≥ 1.36 no longer knows this gate. garboard does, because it can still render the older join order (KEP-4471).
LOCAL_MODE_GATE = "ControlPlaneKubeletLocalMode"
ROOTLESS_GATE = "RootlessControlPlane"
NODE_LOCAL_CRI_SOCKET_GATE = "NodeLocalCRISocket"
ECDSA_GATE = "PublicKeysECDSA"

# The kubelet's own limit, whatever the minor of the control plane: from here on it refuses to run on cgroup v1.
FIRST_KUBELET_WITHOUT_CGROUP_V1 = Minor(1, 35)


@dataclass(frozen=True, slots=True)
class KubeadmGate:
    """One of kubeadm's own feature gates, as opposed to those of the components."""

    name: str
    default: bool
    stage: Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigApi:
    """Which versions of kubeadm.k8s.io a minor reads, and how."""

    written: str
    read: tuple[str, ...]
    deprecated: tuple[str, ...] = ()  # read with a warning
    experimental: tuple[str, ...] = ()  # read only where a command allows it
    removed: Mapping[str, str]  # refused: the last kubeadm release that could migrate it


@dataclass(frozen=True, slots=True, kw_only=True)
class MinorFacts:
    """The row of one minor."""

    reference: KubernetesVersion  # the release that type data, defaults and parity tests are taken from
    etcd_tag: str
    coredns_tag: str
    pause_tag: str
    minimum_external_etcd: str
    minimum_kubelet: Minor
    cgroup_driver_fallback_ends: Minor  # from here on kubelets need a runtime that reports its cgroup driver
    config_api: ConfigApi
    feature_gates: tuple[KubeadmGate, ...]
    patch_targets: tuple[str, ...]
    kube_proxy_mode: str  # what an empty KubeProxyConfiguration.mode becomes
    warns_about_ipvs: bool
    is_any_wildcard_bind_recommended: bool  # kube-proxy's 0.0.0.0 and :: are both fine, whatever the node's family
    has_merge_method: bool  # arguments of API v1 may extend kubeadm's own value
    has_resolv_conf_leak: bool  # resolvConf of the init node reaches the kubelet-config ConfigMap
    checks_configured_bind_address: bool  # port checks bind the configured address instead of all of them
    refuses_empty_image_volume: bool  # a volume of an image without a reference
    refuses_unused_throttling_factor: bool  # of the kubelet, with MemoryQoS off
    node_port_keywords: tuple[str, ...]  # what nodePortAddresses of kube-proxy may name beside networks
    has_unlimited_events: bool  # eventRecordQPS 0 of the kubelet is no limit, and not the default

    @property
    def minor(self) -> Minor:
        return self.reference.as_minor

    @property
    def gate_defaults(self) -> dict[str, bool]:
        return {gate.name: gate.default for gate in self.feature_gates}

    def is_gate_on(self, gates: Mapping[str, bool], name: str) -> bool:
        """Whether feature gate `name` is on with this configuration; one that the minor does not have is off."""
        defaults = self.gate_defaults
        return name in defaults and gates.get(name, defaults[name])


_REMOVED_APIS = {
    "kubeadm.k8s.io/v1alpha1": "v1.11",
    "kubeadm.k8s.io/v1alpha2": "v1.12",
    "kubeadm.k8s.io/v1alpha3": "v1.14",
    "kubeadm.k8s.io/v1beta1": "v1.15",
    "kubeadm.k8s.io/v1beta2": "v1.22",
}
_STATIC_POD_TARGETS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")

_V1_36 = MinorFacts(
    reference=KubernetesVersion(1, 36, 4),
    etcd_tag="3.6.8-0",
    coredns_tag="v1.14.2",
    pause_tag="3.10.2",
    minimum_external_etcd="3.5.24-0",
    minimum_kubelet=Minor(1, 33),
    cgroup_driver_fallback_ends=Minor(1, 37),
    config_api=ConfigApi(
        written="kubeadm.k8s.io/v1beta4",
        read=("kubeadm.k8s.io/v1beta4", "kubeadm.k8s.io/v1beta3"),
        deprecated=("kubeadm.k8s.io/v1beta3",),
        removed=_REMOVED_APIS,
    ),
    feature_gates=(
        KubeadmGate(NODE_LOCAL_CRI_SOCKET_GATE, default=True, stage="GA"),
        KubeadmGate(ECDSA_GATE, default=False, stage="DEPRECATED"),
        KubeadmGate(ROOTLESS_GATE, default=False, stage="ALPHA"),
    ),
    patch_targets=(*_STATIC_POD_TARGETS, "kubeletconfiguration", "corednsdeployment"),
    kube_proxy_mode="",
    warns_about_ipvs=False,
    is_any_wildcard_bind_recommended=False,
    has_merge_method=False,
    has_resolv_conf_leak=True,
    checks_configured_bind_address=False,
    refuses_empty_image_volume=False,
    refuses_unused_throttling_factor=False,
    node_port_keywords=("primary",),
    has_unlimited_events=False,
)

_V1_37 = MinorFacts(
    reference=KubernetesVersion(1, 37, 1),
    etcd_tag="3.7.0-0",
    coredns_tag="v1.14.6",
    pause_tag="3.10.2",
    minimum_external_etcd="3.5.24-0",
    minimum_kubelet=Minor(1, 34),
    cgroup_driver_fallback_ends=Minor(1, 38),
    config_api=ConfigApi(
        written="kubeadm.k8s.io/v1beta4",
        read=("kubeadm.k8s.io/v1beta4", "kubeadm.k8s.io/v1"),
        experimental=("kubeadm.k8s.io/v1",),
        removed={**_REMOVED_APIS, "kubeadm.k8s.io/v1beta3": "v1.36"},
    ),
    feature_gates=(KubeadmGate(ROOTLESS_GATE, default=False, stage="ALPHA"),),
    patch_targets=(*_STATIC_POD_TARGETS, "kubeletconfiguration", "corednsdeployment", "kubeproxydaemonset"),
    kube_proxy_mode="iptables",
    warns_about_ipvs=True,
    is_any_wildcard_bind_recommended=True,
    has_merge_method=True,
    has_resolv_conf_leak=False,
    checks_configured_bind_address=True,
    refuses_empty_image_volume=True,
    refuses_unused_throttling_factor=True,
    node_port_keywords=("primary", "localhost", "all"),
    has_unlimited_events=True,
)

# The oldest first; the last one is the default version.
ROWS = (_V1_36, _V1_37)

MINORS: Mapping[Minor, MinorFacts] = {row.minor: row for row in ROWS}
SUPPORTED_VERSIONS = tuple(row.reference for row in ROWS)
DEFAULT_VERSION = SUPPORTED_VERSIONS[-1]


def facts_of(version: KubernetesVersion) -> MinorFacts:
    """Return the row of the minor of `version`; refuse a minor that has none."""
    row = MINORS.get(version.as_minor)
    if row is not None:
        return row
    known = ", ".join(map(str, MINORS))
    raise InvalidValue(
        f"Kubernetes {version.as_minor} is not supported; the supported minors are {known}",
        hint=f"pass --kubernetes-version {DEFAULT_VERSION}, or use a garboard release that knows {version.as_minor}",
        error_class="unsupported-version",
    )


def reference_version(version: KubernetesVersion) -> KubernetesVersion:
    """Return the release whose behaviour stands for the minor of `version`; refuse a minor that has no row."""
    return facts_of(version).reference
