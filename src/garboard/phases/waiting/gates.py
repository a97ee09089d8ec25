"""What is waited for, as values: they say where to look, and hold nothing that is only known while looking."""

from collections.abc import Iterator
from typing import TypeAlias

from garboard.documents import Json
from garboard.manifests.kubelet import CONFIG_FILE
from garboard.manifests.paths import manifest_path
from garboard.model.node import Timeouts
from garboard.values import dataclass

API_SERVER, CONTROLLER_MANAGER, SCHEDULER = "kube-apiserver", "kube-controller-manager", "kube-scheduler"
KUBELET_CONF = "/etc/kubernetes/kubelet.conf"


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeletHealthy:
    """The kubelet of this machine says that it is well, where its configuration file lets it say so."""

    timeout_s: float
    config: str = CONFIG_FILE

    @property
    def name(self) -> str:
        return "a healthy kubelet"

    def describe(self) -> dict[str, Json]:
        return {"path": "/healthz", "addressFrom": self.config}


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentHealthy:
    """A static pod of the control plane is well, at the address that its manifest gives it."""

    component: str
    timeout_s: float

    @property
    def name(self) -> str:
        return f"a healthy {self.component}"

    @property
    def manifest(self) -> str:
        return manifest_path(self.component)

    @property
    def path(self) -> str:
        """The path that kubeadm asks for; the controller manager has no /livez."""
        return "/healthz" if self.component == CONTROLLER_MANAGER else "/livez"

    def describe(self) -> dict[str, Json]:
        return {"path": self.path, "addressFrom": self.manifest}


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiServerReady:
    """An API server takes requests."""

    server: str
    timeout_s: float

    @property
    def name(self) -> str:
        return f"the API server at {self.server}"

    def describe(self) -> dict[str, Json]:
        return {"url": f"{self.server}/readyz"}


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRegistered:
    """The kubelet has made its Node, with the label that it gives to it a moment later."""

    node_name: str
    timeout_s: float

    @property
    def name(self) -> str:
        return f"Node {self.node_name} in the cluster"

    def describe(self) -> dict[str, Json]:
        return {"kind": "Node", "name": self.node_name}


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeletBootstrapped:
    """The kubelet has a certificate of its own, and a kubeconfig that uses it."""

    node_name: str
    timeout_s: float
    kubeconfig: str = KUBELET_CONF
    server: str = ""  # whom it gets that from, for the evidence

    @property
    def name(self) -> str:
        return "the kubelet's own certificate"

    def describe(self) -> dict[str, Json]:
        return {"file": self.kubeconfig}


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdHealthy:
    """More than half of the voting members of etcd answer, and have nothing to complain about."""

    timeout_s: float

    @property
    def name(self) -> str:
        return "a majority of healthy etcd members"

    def describe(self) -> dict[str, Json]:
        return {"members": "all that vote"}


NodeGate: TypeAlias = KubeletHealthy | ComponentHealthy | ApiServerReady | NodeRegistered | KubeletBootstrapped


def control_plane_gates(timeouts: Timeouts) -> Iterator[ComponentHealthy]:
    """Yield what wait-control-plane waits for; they start beside each other, so the order costs no time."""
    timeout_s = timeouts.control_plane_component_health_check.seconds
    for component in (API_SERVER, CONTROLLER_MANAGER, SCHEDULER):
        yield ComponentHealthy(component=component, timeout_s=timeout_s)
