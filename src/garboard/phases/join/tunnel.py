"""A node that reaches its cluster through a tunnel alone: what is checked first, and the agent that join sets up.

Discovery has gone through an agent in join's own process, which changed nothing. The agent planned here is there to
stay: the kubelet gets its certificate through it, and so does everything on the node that asks the API server.
"""

from collections.abc import Iterator
from ipaddress import IPv4Interface, IPv6Interface
from typing import TYPE_CHECKING

from garboard.documents import write_yaml
from garboard.engine import AwaitGate, ControlLink, ControlUnitFile, Note, Step, WriteFile
from garboard.errors import NotReady
from garboard.manifests.tunnel_agent import (
    MANIFEST,
    POD_ANNOTATIONS,
    UNIT_FILE,
    UNIT_HEAD,
    TunnelAgent,
    agent_pod,
    agent_unit,
)
from garboard.model.addresses import IpAddress, join_host_port, parse_networks
from garboard.model.cluster import ClusterConfiguration
from garboard.model.component import arg_value
from garboard.model.node import NodeRegistration
from garboard.model.tunnel import (
    AGENT,
    AGENT_CERTIFICATE,
    AGENT_KEY,
    CA_FILE,
    DEFAULT_LINK,
    TUNNEL_PKI_DIR,
    AgentForm,
    JoinTunnel,
    parse_bind_address,
    parse_servers,
)
from garboard.phases.gates import TunnelOpen
from garboard.phases.preflight import Check, MachineInspector, checks
from garboard.phases.preflight.checks import Found
from garboard.pki.files import CERTIFICATE_MODE, SECRET_MODE
from garboard.values import dataclass

if TYPE_CHECKING:  # reading certificates takes long to load, and only a join through a tunnel does
    from garboard.phases.node.context import MachineView
    from garboard.pki.names import AltNames
    from garboard.pki.tunnel_credentials import AgentCredentials

_FOLDER_MODE = 0o700
_MANIFEST_MODE = 0o600
_DEFAULT_PORT = 6443


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedTunnel:
    """The agent that a node gets, and what was found out before it is planned."""

    agent: TunnelAgent
    agent_form: AgentForm
    credentials: "AgentCredentials"
    api_names: "AltNames"  # that the certificate of the API server is valid for
    interfaces: tuple[tuple[str, IPv4Interface | IPv6Interface], ...] = ()  # of the machine
    program: str = ""  # what the unit starts; empty if there is none
    reads_unit_files: bool = True
    advertised: str = ""  # where the Service `kubernetes` leads; empty if the configuration does not say
    kube_proxy_server: str = ""  # whom kube-proxy asks; empty if that is unknown

    @property
    def bind_address(self) -> IpAddress:
        assert self.agent.bind_address is not None
        return self.agent.bind_address


def agent_of(tunnel: JoinTunnel, cluster: ClusterConfiguration, node: NodeRegistration, address: str) -> TunnelAgent:
    """Return the agent of a node that has this address; it listens where the API server of the cluster advertises."""
    args = cluster.api_server.extra_args
    bind_address = tunnel.bind_address or arg_value(args, "advertise-address") or ""
    if not bind_address:
        raise NotReady(
            "nothing says where agents of this cluster listen: in its ClusterConfiguration the API server has no extra "
            "argument advertise-address",
            hint="pass --tunnel-bind-address; garboard tunnel manifests --bind-address says what the API server needs",
            error_class="no-bind-address",
        )
    port = arg_value(args, "secure-port") or ""
    family = "ipv6" if ":" in address else "ipv4"
    host, server_port = _server(tunnel)
    return TunnelAgent(
        server_host=host,
        server_port=server_port,
        image=tunnel.image,
        bind_address=parse_bind_address(bind_address),
        local_port=int(port) if port.isdigit() else _DEFAULT_PORT,
        api_server=tunnel.api_server,
        agent_id=node.name,
        # With --proxy-strategies=destHost the server finds this node's kubelet through this node's agent.
        identifiers=f"host={node.name}" + (f"&{family}={address}" if address else ""),
    )


def _server(tunnel: JoinTunnel) -> tuple[str, int]:
    """Return the flags of the agent: one host and its port, or all of them in one text and a port that none has."""
    servers = parse_servers(tunnel.server)
    if len(servers) == 1:
        return servers[0]
    return ",".join(join_host_port(host, port) for host, port in servers), servers[0][1]


def tunnel_checks(tunnel: ObservedTunnel, cluster: ClusterConfiguration, node: NodeRegistration) -> Iterator[Check]:
    """Yield the checks of a node that joins through a tunnel; all of them come before anything is written."""
    yield Check("TunnelCertSANs", lambda _: _missing_name(tunnel))
    yield Check("TunnelAddress", lambda _: _overlaps(tunnel, cluster))
    yield checks.no_proxy_to(str(tunnel.bind_address))
    if tunnel.agent_form == "unit":
        yield Check("TunnelUnit", lambda _: _without_unit(tunnel))
    else:
        yield Check("TunnelImage", lambda inspector: _without_image(tunnel, node.cri_socket, inspector))


def _missing_name(tunnel: ObservedTunnel) -> Found:
    names = tunnel.api_names
    if tunnel.bind_address in names.ips:
        return
    held = ", ".join((*names.dns, *map(str, names.ips))) or "no name"
    found = f"the certificate of the API server is valid for {held}, and not for the agent's address"
    mended = "move /etc/kubernetes/pki/apiserver.* away and run garboard init phase certs apiserver"
    yield f"{found} {tunnel.bind_address}: add it to apiServer.certSANs on every control-plane node, {mended}", True


def _overlaps(tunnel: ObservedTunnel, cluster: ClusterConfiguration) -> Found:
    address, networking = tunnel.bind_address, cluster.networking
    for name, text in (("services", networking.service_subnet), ("pods", networking.pod_subnet)):
        for network in parse_networks(text) or () if text else ():
            if address in network:
                yield f"the agent's address {address} is in {network}, the network of {name}: choose another", True
    for interface, found in tunnel.interfaces:
        is_ours = interface == DEFAULT_LINK or (found.ip == address and found.network.num_addresses == 1)
        if not is_ours and address in found.network:
            of = f"the network of {interface}"
            yield f"the agent's address {address} is in {found.network}, {of}: choose another", True


def _without_unit(tunnel: ObservedTunnel) -> Found:
    if not tunnel.reads_unit_files:
        yield "this machine has no systemd that could run the agent: pass --tunnel-as static-pod", True
    if not tunnel.program:
        one_file = "garboard tunnel zipapp -o /usr/local/bin/garboard makes one"
        yield f"there is no program garboard on PATH that the agent's unit could start: {one_file}", True


def _without_image(tunnel: ObservedTunnel, socket: str, inspector: MachineInspector) -> Found:
    image = tunnel.agent.image
    if not inspector.has_image(socket, image):
        yield f"the container runtime has no image {image}: make it with garboard image, and import it", True


def tunnel_warnings(tunnel: ObservedTunnel) -> Iterator[Note]:
    """Say what of the cluster does not lead to agents, and so will not work on this node."""
    if tunnel.advertised != str(tunnel.bind_address):
        where = tunnel.advertised or "the addresses of control-plane nodes"
        text = f"the API server advertises {where}, so pods of this node are not led to its agent at"
        yield Note(f"{text} {tunnel.bind_address}", is_warning=True)
    if tunnel.kube_proxy_server and tunnel.kube_proxy_server != tunnel.agent.api_url:
        text = f"kube-proxy asks {tunnel.kube_proxy_server}, which this node may not reach: set the server of"
        yield Note(f"{text} ConfigMap kube-system/kube-proxy to {tunnel.agent.api_url}", is_warning=True)


def plan_agent(tunnel: ObservedTunnel, machine: "MachineView", *, timeout_s: float) -> Iterator[Step | Note]:
    """Plan the agent: its credentials, its address, and its unit or static pod; a unit is waited for at once."""
    yield from _plan_credentials(tunnel, machine)
    address = ControlLink(address=str(tunnel.bind_address), link=tunnel.agent.link, verb="add")
    yield Step(address, "the agent listens there in place of the API server")
    if tunnel.agent_form == "static-pod":
        pod = write_yaml(agent_pod(tunnel.agent, annotations=POD_ANNOTATIONS)).encode()
        yield from _written(machine, MANIFEST, pod, _MANIFEST_MODE, "the kubelet runs the agent")
        return
    unit = agent_unit(tunnel.agent, program=tunnel.program, head=UNIT_HEAD).encode()
    yield from _written(machine, UNIT_FILE, unit, 0o644, "the agent runs before the kubelet")
    yield Step(ControlUnitFile(service=AGENT, verb="enable"), "the kubelet reaches the API server through it")
    yield from plan_wait(tunnel, timeout_s=timeout_s)


def plan_wait(tunnel: ObservedTunnel, *, timeout_s: float) -> Iterator[Step]:
    """Plan to wait until the API server answers through the agent."""
    gate = TunnelOpen(server=tunnel.agent.api_url, timeout_s=timeout_s, is_static_pod=tunnel.agent_form == "static-pod")
    yield Step(AwaitGate(gate=gate), "the kubelet asks for its certificate through it")


def _plan_credentials(tunnel: ObservedTunnel, machine: "MachineView") -> Iterator[Step | Note]:
    found, shown = tunnel.credentials, "the agent shows who it is by it"
    for name, data, mode, cause in (
        (CA_FILE, found.ca, CERTIFICATE_MODE, "the agent knows the tunnel's servers by it"),
        (AGENT_CERTIFICATE, found.certificate, CERTIFICATE_MODE, shown),
        (AGENT_KEY, found.key, SECRET_MODE, shown),
    ):
        yield from _written(machine, f"{TUNNEL_PKI_DIR}/{name}", data, mode, cause, is_secret=mode == SECRET_MODE)


def _written(
    machine: "MachineView", path: str, content: bytes, mode: int, cause: str, *, is_secret: bool = False
) -> Iterator[Step | Note]:
    if machine.read(path) == content:
        yield Note(f"{path} is as it should be")
        return
    folder_mode = _FOLDER_MODE if path.startswith(f"{TUNNEL_PKI_DIR}/") else 0o755
    action = WriteFile(path=path, content=content, mode=mode, folder_mode=folder_mode, is_secret=is_secret)
    yield Step(action, cause)
