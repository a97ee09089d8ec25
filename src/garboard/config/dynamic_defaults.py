"""Defaults that depend on the machine: names, addresses, sockets, tokens; and the version in its normal form.

kubeadm stops at the first of these that fails. Here each failure becomes a problem beside the others, in its words.
"""

from dataclasses import replace

from garboard.config.host_facts import HostFacts
from garboard.config.problems import FieldPath, Notes, Problem
from garboard.config.versions import ResolvedVersion
from garboard.errors import InvalidValue
from garboard.model.addresses import join_host_port, parse_host_port, parse_ip
from garboard.model.cluster import CI_IMAGE_REPOSITORY, DEFAULT_IMAGE_REPOSITORY, ClusterConfiguration
from garboard.model.go_text import go_quote
from garboard.model.lifecycle import BootstrapToken, InitConfiguration, JoinConfiguration, ResetConfiguration
from garboard.model.node import CONTROL_PLANE_TAINT, DEFAULT_CRI_SOCKET, ApiEndpoint, NodeRegistration


def default_init(
    init: InitConfiguration, version: ResolvedVersion, host: HostFacts, notes: Notes, *, detect_cri: bool
) -> InitConfiguration:
    endpoint = _default_endpoint(init.local_api_endpoint, ("localAPIEndpoint", "advertiseAddress"), host, notes)
    return replace(
        init,
        bootstrap_tokens=tuple(_default_token(token, host) for token in init.bootstrap_tokens),
        node_registration=_default_registration(
            init.node_registration, host, notes, detect_cri=detect_cri, is_control_plane=True
        ),
        local_api_endpoint=endpoint,
        cluster=_default_cluster(init.cluster, version, endpoint, notes),
    )


def default_join(join: JoinConfiguration, host: HostFacts, notes: Notes, *, detect_cri: bool) -> JoinConfiguration:
    control_plane = join.control_plane
    if control_plane is not None:
        path = ("controlPlane", "localAPIEndpoint", "advertiseAddress")
        endpoint = _default_endpoint(control_plane.local_api_endpoint, path, host, notes)
        control_plane = replace(control_plane, local_api_endpoint=endpoint)
    registration = _default_registration(
        join.node_registration, host, notes, detect_cri=detect_cri, is_control_plane=control_plane is not None
    )
    return replace(join, node_registration=registration, control_plane=control_plane)


def default_reset(reset: ResetConfiguration, host: HostFacts, notes: Notes, *, detect_cri: bool) -> ResetConfiguration:
    socket = _default_socket(reset.cri_socket, ("criSocket",), host, notes, detect_cri=detect_cri)
    return replace(reset, cri_socket=socket)


def _default_token(token: BootstrapToken, host: HostFacts) -> BootstrapToken:
    return token if token.token else replace(token, token=host.new_token())


def _default_registration(
    node: NodeRegistration, host: HostFacts, notes: Notes, *, detect_cri: bool, is_control_plane: bool
) -> NodeRegistration:
    name = (node.name or host.hostname()).strip().lower()
    if not name:
        notes.problems.append(_plain(("nodeRegistration", "name"), "empty hostname is invalid"))
    taints = (CONTROL_PLANE_TAINT,) if node.taints is None and is_control_plane else node.taints
    socket = _default_socket(node.cri_socket, ("nodeRegistration", "criSocket"), host, notes, detect_cri=detect_cri)
    return replace(node, name=name, taints=taints, cri_socket=socket)


def _default_socket(given: str, path: FieldPath, host: HostFacts, notes: Notes, *, detect_cri: bool) -> str:
    if given.startswith("unix"):
        return given
    if given:
        notes.warn(
            "Usage of CRI endpoints without URL scheme is deprecated and can cause kubelet errors in the future. "
            f'Automatically prepending scheme "unix" to the "criSocket" with value {go_quote(given)}. '
            "Please update your configuration!"
        )
        return f"unix://{given}"
    found = host.cri_sockets() if detect_cri else ()
    if len(found) > 1:
        message = (
            "found multiple CRI endpoints on the host. Please define which one do you wish to use by setting the "
            f"'criSocket' field in the kubeadm configuration file: {', '.join(found)}"
        )
        notes.problems.append(_plain(path, message))
    return found[0] if found else DEFAULT_CRI_SOCKET


def _default_endpoint(endpoint: ApiEndpoint, path: FieldPath, host: HostFacts, notes: Notes) -> ApiEndpoint:
    given = endpoint.advertise_address
    address = parse_ip(given)
    if given and address is None:
        message = f'couldn\'t use "{given}" as "apiserver-advertise-address", must be ipv4 or ipv6 address'
        notes.problems.append(_plain(path, message))
        return endpoint
    if address is not None and address.is_loopback:
        loopback = host.loopback_address()
        if loopback is None:
            message = f"unable to select an IP from lo network interface for {'.'.join(map(str, path))} {given}"
            notes.problems.append(_plain(path, message))
        return replace(endpoint, advertise_address=loopback or given)
    if address is not None and not address.is_unspecified:
        return replace(endpoint, advertise_address=str(address))
    return replace(endpoint, advertise_address=_host_address(given, host, notes))


def _host_address(given: str, host: HostFacts, notes: Notes) -> str:
    """Find the address for one that was left open, or given as 0.0.0.0 or ::."""
    found = host.default_address(prefer_ipv6=":" in given)
    if found is None:
        notes.warn(
            "WARNING: could not obtain a bind address for the API Server: no default routes found in "
            '"/proc/net/route" or "/proc/net/ipv6_route"; using: 0.0.0.0'
        )
        return "0.0.0.0"  # noqa: S104 - what kubeadm puts there; it can not be used, and later checks say so
    if given:
        notes.warn(f'WARNING: overriding requested API server bind address: requested "{given}", actual "{found}"')
    return found


def _default_cluster(
    cluster: ClusterConfiguration, version: ResolvedVersion, endpoint: ApiEndpoint, notes: Notes
) -> ClusterConfiguration:
    is_ci_build = version.is_ci and cluster.image_repository == DEFAULT_IMAGE_REPOSITORY
    return replace(
        cluster,
        kubernetes_version=version.text,
        ci_kubernetes_version=f"ci/{version.text}" if version.is_ci else "",
        ci_image_repository=CI_IMAGE_REPOSITORY if is_ci_build else "",
        control_plane_endpoint=_completed_endpoint(cluster.control_plane_endpoint, endpoint.bind_port, notes),
        api_server=replace(cluster.api_server, cert_sans=tuple(san.lower() for san in cluster.api_server.cert_sans)),
    )


def _completed_endpoint(given: str, bind_port: int, notes: Notes) -> str:
    if not given:
        return ""
    try:
        host, port = parse_host_port(given)
    except InvalidValue as error:
        notes.problems.append(_plain(("controlPlaneEndpoint",), error.message))
        return given
    return given if port else join_host_port(host, bind_port)


def _plain(path: FieldPath, detail: str) -> Problem:
    return Problem(path=path, detail=detail, is_plain=True)
