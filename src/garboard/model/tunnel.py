"""The tunnel of a node that cannot reach its API server otherwise: what it is asked for, and the names of its parts."""

from ipaddress import ip_address
from typing import Literal, TypeAlias

from garboard.errors import InvalidValue
from garboard.model.addresses import IpAddress, parse_host_port
from garboard.model.image import GARBOARD_IMAGE
from garboard.model.paths import KUBERNETES_DIR
from garboard.values import dataclass

AgentForm: TypeAlias = Literal["unit", "static-pod"]

AGENT_FORMS: tuple[AgentForm, ...] = ("unit", "static-pod")
DEFAULT_LINK = "konnectivity0"
DEFAULT_AGENT_PORT = 8132  # of the proxy server, for agents
DEFAULT_API_SERVER = "127.0.0.1:6443"  # as the proxy server reaches it
TUNNEL_PKI_DIR = f"{KUBERNETES_DIR}/konnectivity"
AGENT = "konnectivity-agent"
# The names of `garboard tunnel certs`.
CA_FILE, AGENT_CERTIFICATE, AGENT_KEY = "ca.crt", "agent.crt", "agent.key"


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinTunnel:
    """The tunnel through which a node joins.

    `server` is what agents dial: a host, or several separated by commas, each with its port or the default one.
    Without a `bind_address` the agent listens at the address that the API server advertises.
    """

    server: str
    credentials_dir: str
    bind_address: str = ""
    agent_form: AgentForm = "unit"
    api_server: str = DEFAULT_API_SERVER
    image: str = GARBOARD_IMAGE


def parse_servers(text: str) -> tuple[tuple[str, int], ...]:
    """Read the hosts and ports of proxy servers."""
    return tuple(_parse_server(part.strip()) for part in text.split(","))


def _parse_server(text: str) -> tuple[str, int]:
    try:
        host, port = parse_host_port(text)
    except InvalidValue:
        host, port = "", ""
    if not host:
        raise InvalidValue(f"{text!r} is not the address of a proxy server", hint="write host or host:port")
    return host, int(port or DEFAULT_AGENT_PORT)


def parse_bind_address(text: str) -> IpAddress:
    """Read an address that the Service `kubernetes` can lead to: no loopback, link-local or multicast one."""
    hint = "choose one of 10/8, 172.16/12 or 192.168/16"
    try:
        address = ip_address(text)
    except ValueError:
        raise InvalidValue(f"{text!r} is not an address", hint=hint) from None
    if address.is_loopback or address.is_link_local or address.is_multicast or address.is_unspecified:
        raise InvalidValue(f"the API server cannot publish {text} as its endpoint", hint=hint)
    return address
