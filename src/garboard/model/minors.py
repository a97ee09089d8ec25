"""Everything that depends on the Kubernetes minor, as one table: supporting 1.38 is one more entry.

Behaviour follows the kubeadm that is emulated: that of the minor in `kubernetesVersion`, at its reference patch.
"""

from collections.abc import Mapping
from typing import Literal

from garboard.model.version import SUPPORTED_VERSIONS, KubernetesVersion, Minor, reference_version
from garboard.values import dataclass

Stage = Literal["ALPHA", "BETA", "GA", "DEPRECATED"]

# kubeadm ≥ 1.36 no longer knows this gate. garboard does, because it can still render the older join order (KEP-4471).
LOCAL_MODE_GATE = "ControlPlaneKubeletLocalMode"
ROOTLESS_GATE = "RootlessControlPlane"
NODE_LOCAL_CRI_SOCKET_GATE = "NodeLocalCRISocket"
ECDSA_GATE = "PublicKeysECDSA"


@dataclass(frozen=True, slots=True)
class FeatureGate:
    """One of kubeadm's own gates; the gates of the components are theirs."""

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
    reference: KubernetesVersion
    etcd_tag: str
    coredns_tag: str
    pause_tag: str
    minimum_external_etcd: str
    minimum_control_plane: Minor
    minimum_kubelet: Minor
    config_api: ConfigApi
    feature_gates: tuple[FeatureGate, ...]
    patch_targets: tuple[str, ...]
    kube_proxy_mode: str  # what an empty KubeProxyConfiguration.mode becomes
    warns_about_ipvs: bool
    is_any_wildcard_bind_recommended: bool  # kube-proxy's 0.0.0.0 and :: are both fine, whatever the node's family
    has_merge_method: bool  # arguments of API v1 may extend kubeadm's own value
    has_resolv_conf_leak: bool  # resolvConf of the init node reaches the kubelet-config ConfigMap
    reads_cri_socket_annotation: bool
    checks_configured_bind_address: bool  # port checks bind the configured address instead of all of them

    @property
    def minor(self) -> Minor:
        return self.reference.as_minor

    @property
    def gate_defaults(self) -> dict[str, bool]:
        return {gate.name: gate.default for gate in self.feature_gates}

    def is_gate_on(self, gates: Mapping[str, bool], name: str) -> bool:
        """Whether gate `name` is on, given what the configuration says; a gate the minor has not got is off."""
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
    minimum_control_plane=Minor(1, 35),
    minimum_kubelet=Minor(1, 33),
    config_api=ConfigApi(
        written="kubeadm.k8s.io/v1beta4",
        read=("kubeadm.k8s.io/v1beta4", "kubeadm.k8s.io/v1beta3"),
        deprecated=("kubeadm.k8s.io/v1beta3",),
        removed=_REMOVED_APIS,
    ),
    feature_gates=(
        FeatureGate(NODE_LOCAL_CRI_SOCKET_GATE, default=True, stage="GA"),
        FeatureGate(ECDSA_GATE, default=False, stage="DEPRECATED"),
        FeatureGate(ROOTLESS_GATE, default=False, stage="ALPHA"),
    ),
    patch_targets=(*_STATIC_POD_TARGETS, "kubeletconfiguration", "corednsdeployment"),
    kube_proxy_mode="",
    warns_about_ipvs=False,
    is_any_wildcard_bind_recommended=False,
    has_merge_method=False,
    has_resolv_conf_leak=True,
    reads_cri_socket_annotation=True,
    checks_configured_bind_address=False,
)

_V1_37 = MinorFacts(
    reference=KubernetesVersion(1, 37, 1),
    etcd_tag="3.7.0-0",
    coredns_tag="v1.14.6",
    pause_tag="3.10.2",
    minimum_external_etcd="3.5.24-0",
    minimum_control_plane=Minor(1, 36),
    minimum_kubelet=Minor(1, 34),
    config_api=ConfigApi(
        written="kubeadm.k8s.io/v1beta4",
        read=("kubeadm.k8s.io/v1beta4", "kubeadm.k8s.io/v1"),
        experimental=("kubeadm.k8s.io/v1",),
        removed={**_REMOVED_APIS, "kubeadm.k8s.io/v1beta3": "v1.36"},
    ),
    feature_gates=(FeatureGate(ROOTLESS_GATE, default=False, stage="ALPHA"),),
    patch_targets=(*_STATIC_POD_TARGETS, "kubeletconfiguration", "corednsdeployment", "kubeproxydaemonset"),
    kube_proxy_mode="iptables",
    warns_about_ipvs=True,
    is_any_wildcard_bind_recommended=True,
    has_merge_method=True,
    has_resolv_conf_leak=False,
    reads_cri_socket_annotation=False,
    checks_configured_bind_address=True,
)

MINORS: Mapping[Minor, MinorFacts] = {facts.minor: facts for facts in (_V1_36, _V1_37)}
assert tuple(facts.reference for facts in MINORS.values()) == SUPPORTED_VERSIONS, "one entry for each reference patch"


def facts_of(version: KubernetesVersion) -> MinorFacts:
    """Return what is particular to the minor of `version`; refuse a minor we have no data for."""
    return MINORS[reference_version(version).as_minor]
