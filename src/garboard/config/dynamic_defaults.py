"""Defaults that depend on the machine: names, addresses, sockets, tokens; and the version in its normal form.

What the machine knows arrives as `HostFacts`. kubeadm stops at the first default that fails; here each failure becomes
one of the problems, in kubeadm's words.
"""

from collections.abc import Sequence
from dataclasses import field, replace
from typing import Protocol

from garboard.config.problems import ConfigNotes, FieldPath, Problem
from garboard.config.versions import ResolvedVersion
from garboard.errors import InvalidValue
from garboard.model.addresses import join_host_port, parse_host_port, parse_ip
from garboard.model.cluster import CI_IMAGE_REPOSITORY, DEFAULT_IMAGE_REPOSITORY, ClusterConfiguration
from garboard.model.go import go_quote
from garboard.model.lifecycle import BootstrapToken, InitConfiguration, JoinConfiguration, ResetConfiguration
from garboard.model.node import CONTROL_PLANE_TAINT, DEFAULT_CRI_SOCKET, ApiEndpoint, NodeRegistration
from garboard.values import dataclass


class HostFacts(Protocol):
    """What the machine knows; it is asked only for what the configuration does not set."""

    def hostname(self) -> str: ...

    def default_address(self, *, prefer_ipv6: bool) -> str | None:
        """The address of the interface of the default route; nothing where there is no such route."""

    def loopback_address(self) -> str | None:
        """A global address of the loopback interface, if it has one."""

    def cri_sockets(self) -> Sequence[str]:
        """Those of `model.node.KNOWN_CRI_SOCKETS` that a container runtime listens on."""

    def new_token(self) -> str: ...

    def has_file(self, path: str) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedFacts:
    """Fixed facts instead of the machine's: placeholders for printed defaults, and tests."""

    host: str = "node"
    address: str | None = "1.2.3.4"
    address_v6: str | None = None
    loopback: str | None = None
    sockets: tuple[str, ...] = ()
    token: str = field(default="abcdef.0123456789abcdef", repr=False)
    files: frozenset[str] = frozenset()

    def hostname(self) -> str:
        return self.host

    def default_address(self, *, prefer_ipv6: bool) -> str | None:
        first, second = (self.address_v6, self.address) if prefer_ipv6 else (self.address, self.address_v6)
        return first or second

    def loopback_address(self) -> str | None:
        return self.loopback

    def cri_sockets(self) -> Sequence[str]:
        return self.sockets

    def new_token(self) -> str:
        return self.token

    def has_file(self, path: str) -> bool:
        return path in self.files


def default_init(
    init: InitConfiguration, version: ResolvedVersion, host: HostFacts, notes: ConfigNotes, *, detect_cri: bool
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


def default_join(
    join: JoinConfiguration, host: HostFacts, notes: ConfigNotes, *, detect_cri: bool
) -> JoinConfiguration:
    control_plane = join.control_plane
    if control_plane is not None:
        path = ("controlPlane", "localAPIEndpoint", "advertiseAddress")
        endpoint = _default_endpoint(control_plane.local_api_endpoint, path, host, notes)
        control_plane = replace(control_plane, local_api_endpoint=endpoint)
    registration = _default_registration(
        join.node_registration, host, notes, detect_cri=detect_cri, is_control_plane=control_plane is not None
    )
    return replace(join, node_registration=registration, control_plane=control_plane)


def default_reset(
    reset: ResetConfiguration, host: HostFacts, notes: ConfigNotes, *, detect_cri: bool
) -> ResetConfiguration:
    socket = _default_socket(reset.cri_socket, ("criSocket",), host, notes, detect_cri=detect_cri)
    return replace(reset, cri_socket=socket)


def _default_token(token: BootstrapToken, host: HostFacts) -> BootstrapToken:
    return token if token.token else replace(token, token=host.new_token())


def _default_registration(
    node: NodeRegistration, host: HostFacts, notes: ConfigNotes, *, detect_cri: bool, is_control_plane: bool
) -> NodeRegistration:
    name = (node.name or host.hostname()).strip().lower()
    if not name:
        notes.problems.append(_plain(("nodeRegistration", "name"), "empty hostname is invalid"))
    taints = (CONTROL_PLANE_TAINT,) if node.taints is None and is_control_plane else node.taints
    socket = _default_socket(node.cri_socket, ("nodeRegistration", "criSocket"), host, notes, detect_cri=detect_cri)
    return replace(node, name=name, taints=taints, cri_socket=socket)


def _default_socket(given: str, path: FieldPath, host: HostFacts, notes: ConfigNotes, *, detect_cri: bool) -> str:
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


def _default_endpoint(endpoint: ApiEndpoint, path: FieldPath, host: HostFacts, notes: ConfigNotes) -> ApiEndpoint:
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


def _host_address(given: str, host: HostFacts, notes: ConfigNotes) -> str:
    """Return the host's address in place of one that is unset, 0.0.0.0 or ::."""
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
    cluster: ClusterConfiguration, version: ResolvedVersion, endpoint: ApiEndpoint, notes: ConfigNotes
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


def _completed_endpoint(given: str, bind_port: int, notes: ConfigNotes) -> str:
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
