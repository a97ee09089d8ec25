"""Which checks there are: for a control-plane node and for a node that joins, in kubeadm's order."""

from collections.abc import Iterator

from garboard.errors import InvalidValue
from garboard.manifests.arguments import last_arg
from garboard.manifests.paths import KUBERNETES_DIR, manifest_path
from garboard.model.addresses import parse_ip, parse_networks, split_host_port
from garboard.model.cluster import ClusterConfiguration
from garboard.model.component import Arg, ExternalEtcd, LocalEtcd
from garboard.model.lifecycle import JoinConfiguration, TokenDiscovery
from garboard.model.minors import MinorFacts
from garboard.model.node import ApiEndpoint, NodeRegistration
from garboard.model.version import KubernetesVersion
from garboard.phases.preflight import checks
from garboard.phases.preflight.outcome import Check
from garboard.phases.preflight.proxies import no_proxy_to, no_proxy_to_network
from garboard.phases.preflight.system import system_fits

KUBELET_PORT, SCHEDULER_PORT, CONTROLLER_MANAGER_PORT, ETCD_PORTS = 10250, 10259, 10257, (2379, 2380)
_FORWARDING = {4: "/proc/sys/net/ipv4/ip_forward", 6: "/proc/sys/net/ipv6/conf/default/forwarding"}
_MANIFESTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd")


def control_plane_checks(
    cluster: ClusterConfiguration,
    endpoint: ApiEndpoint,
    registration: NodeRegistration,
    *,
    is_joining: bool = False,
    downloads_certs: bool = False,
) -> Iterator[Check]:
    """Yield the checks of a control-plane node; one that joins has had those of every node before."""
    networking = cluster.networking
    yield checks.enough_cpus()
    yield checks.enough_memory()
    yield checks.firewall_is_open((endpoint.bind_port, KUBELET_PORT))
    yield from _component_ports(cluster, endpoint)
    yield from (checks.file_is_available(manifest_path(name)) for name in _MANIFESTS)
    yield no_proxy_to(endpoint.advertise_address)
    subnets = [text for subnet in (networking.service_subnet, networking.pod_subnet) for text in subnet.split(",")]
    yield from (no_proxy_to_network(subnet) for subnet in subnets if subnet)
    if not is_joining:
        yield from _node_checks(registration, cluster.facts, cluster.release)
        yield from _forwarding(_families(endpoint.advertise_address, subnets))
        if isinstance(cluster.etcd, ExternalEtcd):
            yield checks.external_etcd_fits(cluster.etcd, cluster.facts.minimum_external_etcd)
    yield from _etcd_checks(cluster, endpoint, has_certificates=not (is_joining and downloads_certs))


def join_checks(config: JoinConfiguration, facts: MinorFacts) -> Iterator[Check]:
    """Yield the checks of every node that joins; a control-plane node has more of them once the cluster is known."""
    for name in ("kubelet.conf", "bootstrap-kubelet.conf"):
        yield checks.file_is_available(f"{KUBERNETES_DIR}/{name}")
    yield from _node_checks(config.node_registration, facts, None)
    if config.control_plane is None:
        yield checks.file_is_available(config.ca_cert_path)
    if isinstance(config.discovery, TokenDiscovery):
        try:
            host, _ = split_host_port(config.discovery.api_server_endpoint)
        except InvalidValue:
            return
        yield no_proxy_to(host)
        address = parse_ip(host)
        yield from _forwarding({address.version} if address else set())


def _node_checks(
    registration: NodeRegistration, facts: MinorFacts, control_plane: KubernetesVersion | None
) -> Iterator[Check]:
    yield checks.runtime_is_ready(registration.cri_socket)
    yield checks.runtime_tells_cgroup_driver(registration.cri_socket, facts.minor.minor)
    yield checks.swap_is_off()
    yield from map(checks.program_is_there, ("losetup", "mount", "cp"))
    yield system_fits()
    yield checks.node_name_works(registration.name)
    yield checks.kubelet_fits(facts, control_plane)
    yield checks.service_is_enabled("kubelet")
    yield checks.port_is_free(KUBELET_PORT)


def _component_ports(cluster: ClusterConfiguration, endpoint: ApiEndpoint) -> Iterator[Check]:
    for port, args in (
        (endpoint.bind_port, cluster.api_server.extra_args),
        (SCHEDULER_PORT, cluster.scheduler.extra_args),
        (CONTROLLER_MANAGER_PORT, cluster.controller_manager.extra_args),
    ):
        is_asked = cluster.facts.checks_configured_bind_address
        yield checks.port_is_free(port, _value(args, "bind-address") if is_asked else "")


def _etcd_checks(cluster: ClusterConfiguration, endpoint: ApiEndpoint, *, has_certificates: bool) -> Iterator[Check]:
    etcd = cluster.etcd
    if isinstance(etcd, LocalEtcd):
        address = _value(cluster.api_server.extra_args, "advertise-address") or endpoint.advertise_address
        is_asked = cluster.facts.checks_configured_bind_address
        yield from (checks.port_is_free(port, address if is_asked else "") for port in ETCD_PORTS)
        yield checks.folder_is_available(etcd.data_dir)
    elif has_certificates:
        files = (etcd.ca_file, etcd.cert_file, etcd.key_file)
        yield from (checks.file_is_there(path, "ExternalEtcdClientCertificates") for path in files if path)


def _families(advertise_address: str, subnets: list[str]) -> set[int]:
    networks = (network for subnet in subnets for network in parse_networks(subnet) or ())
    address = parse_ip(advertise_address)
    return {network.version for network in networks} | ({address.version} if address else set())


def _forwarding(families: set[int]) -> Iterator[Check]:
    yield from (checks.file_says_one(path) for family, path in _FORWARDING.items() if family in families)


def _value(args: tuple[Arg, ...], name: str) -> str:
    found = last_arg(args, name)
    return found[1].value if found else ""
