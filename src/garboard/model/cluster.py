"""The cluster-wide configuration that everything past `config` reads, and the container images that follow from it.

It is independent of the API version. The defaults are kubeadm's static ones; `config` fills in what depends on the
machine.
"""

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from garboard.model.addresses import address_at
from garboard.model.component import ApiServer, ControlPlaneComponent, Dns, ExternalEtcd, LocalEtcd
from garboard.model.duration import Duration
from garboard.model.minors import (
    DEFAULT_VERSION,
    ECDSA_GATE,
    LOCAL_MODE_GATE,
    NODE_LOCAL_CRI_SOCKET_GATE,
    ROOTLESS_GATE,
    MinorFacts,
    facts_of,
)
from garboard.model.paths import DEFAULT_CERTIFICATES_DIR
from garboard.model.version import KubernetesVersion, Minor
from garboard.values import dataclass

DEFAULT_IMAGE_REPOSITORY = "registry.k8s.io"
CI_IMAGE_REPOSITORY = "gcr.io/k8s-staging-ci-images"

EncryptionAlgorithm = Literal["RSA-2048", "RSA-3072", "RSA-4096", "ECDSA-P256", "ECDSA-P384"]
DEFAULT_ENCRYPTION_ALGORITHM: EncryptionAlgorithm = "RSA-2048"
DEFAULT_CERTIFICATE_VALIDITY = Duration.of(hours=8760)
DEFAULT_CA_CERTIFICATE_VALIDITY = Duration.of(hours=87600)


@dataclass(frozen=True, slots=True, kw_only=True)
class Networking:
    """One CIDR, or one per address family joined by a comma, as kubeadm writes them into flags."""

    service_subnet: str = "10.96.0.0/12"
    pod_subnet: str = ""
    dns_domain: str = "cluster.local"

    @property
    def dns_ip(self) -> str:
        """The address of the cluster DNS Service: the tenth of the first service CIDR."""
        return str(address_at(self.service_subnet, 10) or "")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConfiguration:
    """What is stored in the kubeadm-config ConfigMap."""

    kubernetes_version: str = str(DEFAULT_VERSION)  # normalised: v1.37.1, or with a suffix v1.37.0-rc.1
    ci_kubernetes_version: str = ""
    control_plane_endpoint: str = ""
    cluster_name: str = "kubernetes"
    certificates_dir: str = DEFAULT_CERTIFICATES_DIR
    image_repository: str = DEFAULT_IMAGE_REPOSITORY
    ci_image_repository: str = ""
    encryption_algorithm: EncryptionAlgorithm = DEFAULT_ENCRYPTION_ALGORITHM
    certificate_validity_period: Duration = DEFAULT_CERTIFICATE_VALIDITY
    ca_certificate_validity_period: Duration = DEFAULT_CA_CERTIFICATE_VALIDITY
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    networking: Networking = field(default_factory=Networking)
    api_server: ApiServer = field(default_factory=ApiServer)
    controller_manager: ControlPlaneComponent = field(default_factory=ControlPlaneComponent)
    scheduler: ControlPlaneComponent = field(default_factory=ControlPlaneComponent)
    etcd: LocalEtcd | ExternalEtcd = field(default_factory=LocalEtcd)
    dns: Dns = field(default_factory=Dns)
    is_proxy_disabled: bool = False

    @property
    def release(self) -> KubernetesVersion:
        """The numbers of `kubernetes_version`, without a pre-release or build suffix."""
        return KubernetesVersion.parse(self.kubernetes_version.partition("-")[0].partition("+")[0])

    @property
    def minor(self) -> Minor:
        """The minor whose kubeadm is emulated for this cluster."""
        return self.release.as_minor

    @property
    def control_plane_image_repository(self) -> str:
        """Where the images built from the main Kubernetes repository come from."""
        return self.ci_image_repository or self.image_repository

    @property
    def facts(self) -> MinorFacts:
        """What is particular to the kubeadm that is emulated for this cluster."""
        return facts_of(self.release)

    @property
    def key_algorithm(self) -> EncryptionAlgorithm:
        """The algorithm of new keys: where the minor still has the gate for ECDSA keys, the gate decides."""
        if ECDSA_GATE not in self.facts.gate_defaults or ECDSA_GATE not in self.feature_gates:
            return self.encryption_algorithm
        return "ECDSA-P256" if self.feature_gates[ECDSA_GATE] else "RSA-2048"

    @property
    def is_kubelet_local_mode(self) -> bool:
        """Whether the kubelet of a control-plane node talks to its own API server (KEP-4471)."""
        return self.feature_gates.get(LOCAL_MODE_GATE, True)

    @property
    def is_rootless(self) -> bool:
        """Whether the control-plane static pods run as users of their own."""
        return self.facts.is_gate_on(self.feature_gates, ROOTLESS_GATE)

    @property
    def has_instance_config(self) -> bool:
        """Whether the CRI socket is a node's own kubelet setting (instance-config.yaml), not a kubelet flag."""
        if NODE_LOCAL_CRI_SOCKET_GATE not in self.facts.gate_defaults:
            return True
        return self.feature_gates.get(NODE_LOCAL_CRI_SOCKET_GATE, True)


def kubernetes_image(cluster: ClusterConfiguration, name: str) -> str:
    """Return the image of a component that is built from the main Kubernetes repository."""
    tag = re.sub(r"[^-\w.]", "_", cluster.kubernetes_version, flags=re.ASCII)
    return f"{cluster.control_plane_image_repository}/{name}:{tag}"


def etcd_image(cluster: ClusterConfiguration) -> str:
    """Return the image of a local etcd member; with an external etcd, the default one."""
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


def tag_of(image: str) -> str:
    """Return the tag of an image; empty if it has none, also where its digest or the port of its registry follows."""
    return image.partition("@")[0].rpartition("/")[2].partition(":")[2]


def control_plane_images(cluster: ClusterConfiguration) -> tuple[str, ...]:
    """Return every image that a control-plane node of this cluster needs, in the order in which kubeadm lists them."""
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
