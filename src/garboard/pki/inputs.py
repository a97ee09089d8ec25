"""The part of a configuration that certificates and kubeconfigs depend on."""

import enum
from datetime import timedelta
from ipaddress import IPv4Network

from garboard.errors import InvalidValue
from garboard.model.addresses import IpAddress, IpNetwork, join_host_port, parse_ip, parse_networks
from garboard.model.cluster import ClusterConfiguration
from garboard.model.component import ExternalEtcd, LocalEtcd
from garboard.model.lifecycle import InitConfiguration
from garboard.model.node import ApiEndpoint
from garboard.pki.names import ControlPlaneEndpoint
from garboard.values import dataclass

CERTIFICATE_VALIDITY = timedelta(hours=8760)
CA_CERTIFICATE_VALIDITY = timedelta(hours=87600)


class KeyAlgorithm(enum.Enum):
    """The algorithms of `encryptionAlgorithm`."""

    RSA_2048 = "RSA-2048"
    RSA_3072 = "RSA-3072"
    RSA_4096 = "RSA-4096"
    ECDSA_P256 = "ECDSA-P256"
    ECDSA_P384 = "ECDSA-P384"

    @classmethod
    def parse(cls, text: str) -> "KeyAlgorithm":
        try:
            return cls(text)
        except ValueError:
            known = ", ".join(each.value for each in cls)
            raise InvalidValue(f"{text!r} is not a key algorithm", hint=f"the algorithms are {known}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class PkiInputs:
    """The values of a cluster's configuration that certificates and kubeconfigs depend on."""

    node_name: str
    advertise_address: IpAddress
    bind_port: int = 6443
    control_plane_endpoint: ControlPlaneEndpoint | None = None
    is_kubelet_local_mode: bool = True
    cluster_name: str = "kubernetes"
    service_subnets: tuple[IpNetwork, ...] = (IPv4Network("10.96.0.0/12"),)
    dns_domain: str = "cluster.local"
    api_server_cert_sans: tuple[str, ...] = ()
    etcd_server_cert_sans: tuple[str, ...] = ()
    etcd_peer_cert_sans: tuple[str, ...] = ()
    has_external_etcd: bool = False
    key_algorithm: KeyAlgorithm = KeyAlgorithm.RSA_2048
    certificate_validity: timedelta = CERTIFICATE_VALIDITY
    ca_certificate_validity: timedelta = CA_CERTIFICATE_VALIDITY

    @property
    def local_url(self) -> str:
        """The URL of this node's own API server."""
        return f"https://{join_host_port(str(self.advertise_address), self.bind_port)}"

    @property
    def control_plane_url(self) -> str:
        """The URL of the shared endpoint; without one, of this node's API server."""
        endpoint = self.control_plane_endpoint
        return endpoint.url(self.bind_port) if endpoint else self.local_url

    @property
    def api_server_service_ip(self) -> IpAddress:
        """The first address of the first service subnet, under which pods reach the API server."""
        subnet = self.service_subnets[0]
        if subnet.num_addresses < 2:
            raise InvalidValue(
                f"the service subnet {subnet} has no room for the API server's address",
                hint="choose a larger serviceSubnet, such as 10.96.0.0/12",
            )
        return subnet[1]


def inputs_of(configuration: InitConfiguration) -> PkiInputs:
    """Return the inputs for the node and the cluster of `configuration`, which has been defaulted and validated."""
    name, endpoint = configuration.node_registration.name, configuration.local_api_endpoint
    return node_inputs(configuration.cluster, name, endpoint)


def node_inputs(cluster: ClusterConfiguration, node_name: str, local_api_endpoint: ApiEndpoint) -> PkiInputs:
    """Return the inputs for one node of a cluster, whose API server has the endpoint."""
    shared = cluster.control_plane_endpoint
    etcd = cluster.etcd if isinstance(cluster.etcd, LocalEtcd) else LocalEtcd()
    return PkiInputs(
        node_name=node_name,
        advertise_address=_address(local_api_endpoint.advertise_address),
        bind_port=local_api_endpoint.bind_port,
        control_plane_endpoint=ControlPlaneEndpoint.parse(shared) if shared else None,
        is_kubelet_local_mode=cluster.is_kubelet_local_mode,
        cluster_name=cluster.cluster_name,
        service_subnets=_subnets(cluster),
        dns_domain=cluster.networking.dns_domain,
        api_server_cert_sans=cluster.api_server.cert_sans,
        etcd_server_cert_sans=etcd.server_cert_sans,
        etcd_peer_cert_sans=etcd.peer_cert_sans,
        has_external_etcd=isinstance(cluster.etcd, ExternalEtcd),
        key_algorithm=KeyAlgorithm.parse(cluster.key_algorithm),
        certificate_validity=cluster.certificate_validity_period.as_timedelta,
        ca_certificate_validity=cluster.ca_certificate_validity_period.as_timedelta,
    )


def _address(text: str) -> IpAddress:
    address = parse_ip(text)
    if address is None:
        raise InvalidValue(
            f"localAPIEndpoint.advertiseAddress {text!r} is not an IP address", hint="write it as 10.0.0.1 or fd00::1"
        )
    return address


def _subnets(cluster: ClusterConfiguration) -> tuple[IpNetwork, ...]:
    text = cluster.networking.service_subnet
    subnets = parse_networks(text)
    if not subnets:
        raise InvalidValue(
            f"networking.serviceSubnet {text!r} is not a list of networks", hint="write it as 10.96.0.0/12"
        )
    return subnets
