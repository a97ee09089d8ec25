"""What certificates need to know, out of a whole configuration."""

from garboard.errors import InvalidValue
from garboard.model.addresses import IpAddress, IpNetwork, parse_ip, parse_networks
from garboard.model.cluster import ClusterConfiguration
from garboard.model.component import ExternalEtcd, LocalEtcd
from garboard.model.lifecycle import InitConfiguration
from garboard.pki.names import Endpoint
from garboard.pki.spec import KeyAlgorithm, PkiInputs


def inputs_of(configuration: InitConfiguration) -> PkiInputs:
    """Return the inputs for the node and the cluster of `configuration`, which has been defaulted and validated."""
    cluster, endpoint = configuration.cluster, configuration.cluster.control_plane_endpoint
    etcd = cluster.etcd if isinstance(cluster.etcd, LocalEtcd) else LocalEtcd()
    return PkiInputs(
        node_name=configuration.node_registration.name,
        advertise_address=_address(configuration.local_api_endpoint.advertise_address),
        bind_port=configuration.local_api_endpoint.bind_port,
        control_plane_endpoint=Endpoint.parse(endpoint) if endpoint else None,
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
