"""What rendering needs to know of one control-plane node and of the machine it runs on."""

from collections.abc import Mapping
from dataclasses import field
from typing import Self

from garboard.manifests.sources import ConfigField
from garboard.model.cluster import ClusterConfiguration
from garboard.model.duration import Duration
from garboard.model.lifecycle import InitConfiguration
from garboard.model.node import ApiEndpoint, Timeouts
from garboard.values import dataclass

# Linux distributions let files of /etc/ssl/certs point into these; those that exist are mounted as well.
EXTRA_CA_DIRECTORIES = (
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs",
    "/etc/ca-certificates",
    "/usr/share/ca-certificates",
    "/usr/local/share/ca-certificates",
)


@dataclass(frozen=True, slots=True)
class RootlessIds:
    """The numbers of the users and groups that control-plane pods run as, by name (`kubeadm-etcd`, …)."""

    users: Mapping[str, int]
    groups: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeHost:
    """Facts of the machine that show in what is rendered."""

    hostname: str
    ca_directories: frozenset[str] = frozenset()  # those of EXTRA_CA_DIRECTORIES that exist
    environment: Mapping[str, str] = field(default_factory=dict)
    is_external_ca: bool = False  # ca.crt is here, ca.key is not, and what it signed is complete
    is_systemd_resolved_active: bool = False
    rootless_ids: RootlessIds | None = None  # None: not made yet, so nothing runs as them


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPlaneNode:
    """A node that runs control-plane pods; `kind` is the document that describes it."""

    cluster: ClusterConfiguration
    name: str
    endpoint: ApiEndpoint
    host: NodeHost
    health_check_timeout: Duration = Timeouts().control_plane_component_health_check
    kind: str = "InitConfiguration"

    @classmethod
    def of_init(cls, init: InitConfiguration, host: NodeHost) -> Self:
        return cls(
            cluster=init.cluster,
            name=init.node_registration.name,
            endpoint=init.local_api_endpoint,
            host=host,
            health_check_timeout=init.timeouts.control_plane_component_health_check,
        )

    @property
    def is_ipv6(self) -> bool:
        return ":" in self.endpoint.advertise_address

    @property
    def loopback(self) -> str:
        """The loopback address of the family that the node advertises."""
        return "::1" if self.is_ipv6 else "127.0.0.1"

    @property
    def endpoint_field(self) -> ConfigField:
        path = ("localAPIEndpoint",) if self.kind == "InitConfiguration" else ("controlPlane", "localAPIEndpoint")
        return ConfigField(self.kind, path)

    @property
    def address_field(self) -> ConfigField:
        return self.endpoint_field / "advertiseAddress"

    @property
    def name_field(self) -> ConfigField:
        return ConfigField(self.kind, ("nodeRegistration", "name"))

    @property
    def timeout_field(self) -> ConfigField:
        return ConfigField(self.kind, ("timeouts", "controlPlaneComponentHealthCheck"))
