"""What certificates depend on, out of a node's configuration."""

from garboard.model.addresses import parse_networks
from garboard.model.cluster import ClusterConfiguration
from garboard.model.component import ExternalEtcd, LocalEtcd
from garboard.model.node import ApiEndpoint
from garboard.pki import Endpoint, KeyAlgorithm, PkiInputs, parse_ip


def pki_inputs(cluster: ClusterConfiguration, node_name: str, endpoint: ApiEndpoint) -> PkiInputs:
    """Return the inputs for a control-plane node; its configuration has been validated."""
    address = parse_ip(endpoint.advertise_address)
    assert address is not None, "validated"
    etcd = cluster.etcd if isinstance(cluster.etcd, LocalEtcd) else LocalEtcd()
    shared = cluster.control_plane_endpoint
    return PkiInputs(
        node_name=node_name,
        advertise_address=address,
        bind_port=endpoint.bind_port,
        control_plane_endpoint=Endpoint.parse(shared) if shared else None,
        is_kubelet_local_mode=cluster.is_kubelet_local_mode,
        cluster_name=cluster.cluster_name,
        service_subnets=parse_networks(cluster.networking.service_subnet) or (),
        dns_domain=cluster.networking.dns_domain,
        api_server_cert_sans=cluster.api_server.cert_sans,
        etcd_server_cert_sans=etcd.server_cert_sans,
        etcd_peer_cert_sans=etcd.peer_cert_sans,
        has_external_etcd=isinstance(cluster.etcd, ExternalEtcd),
        key_algorithm=KeyAlgorithm.parse(cluster.key_algorithm),
        certificate_validity=cluster.certificate_validity_period.as_timedelta,
        ca_certificate_validity=cluster.ca_certificate_validity_period.as_timedelta,
    )
