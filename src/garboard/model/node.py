"""What is asked of one node: how it registers, where its API server listens, how long to wait."""

from typing import Literal

from garboard.model.component import Arg
from garboard.model.duration import Duration
from garboard.values import dataclass

DEFAULT_CRI_SOCKET = "unix:///var/run/containerd/containerd.sock"
KNOWN_CRI_SOCKETS = (DEFAULT_CRI_SOCKET, "unix:///var/run/crio/crio.sock", "unix:///var/run/cri-dockerd.sock")
DEFAULT_BIND_PORT = 6443
_ONE_MINUTE, _TWO_MINUTES, _FOUR_MINUTES, _FIVE_MINUTES = (Duration.of(minutes=count) for count in (1, 2, 4, 5))

ImagePullPolicy = Literal["Always", "IfNotPresent", "Never"]
DEFAULT_IMAGE_PULL_POLICY: ImagePullPolicy = "IfNotPresent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Taint:
    key: str
    effect: str
    value: str = ""
    time_added: str = ""


CONTROL_PLANE_TAINT = Taint(key="node-role.kubernetes.io/control-plane", effect="NoSchedule")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRegistration:
    name: str = ""
    cri_socket: str = ""
    taints: tuple[Taint, ...] | None = None  # None on a worker: nothing was asked for, and nothing is added
    kubelet_extra_args: tuple[Arg, ...] = ()
    ignore_preflight_errors: tuple[str, ...] = ()
    image_pull_policy: ImagePullPolicy = DEFAULT_IMAGE_PULL_POLICY
    image_pull_serial: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiEndpoint:
    """Where this node's own API server listens."""

    advertise_address: str = ""
    bind_port: int = DEFAULT_BIND_PORT

    @property
    def host_port(self) -> str:
        """`address:port`, with brackets around an IPv6 address."""
        host = f"[{self.advertise_address}]" if ":" in self.advertise_address else self.advertise_address
        return f"{host}:{self.bind_port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    control_plane_component_health_check: Duration = _FOUR_MINUTES
    kubelet_health_check: Duration = _FOUR_MINUTES
    kubernetes_api_call: Duration = _ONE_MINUTE
    etcd_api_call: Duration = _TWO_MINUTES
    tls_bootstrap: Duration = _FIVE_MINUTES
    discovery: Duration = _FIVE_MINUTES
    upgrade_manifests: Duration = _FIVE_MINUTES
