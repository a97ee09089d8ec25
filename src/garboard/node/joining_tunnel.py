"""A join through a tunnel: the way that discovery takes, and what is observed of the machine for the node's agent."""

import posixpath
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from garboard.errors import BadUsage
from garboard.host.facts import MachineFacts, interface_networks
from garboard.host.inspection import address_towards
from garboard.host.node_machine import NodeMachine
from garboard.host.processes import find_program
from garboard.host.root import changed_root
from garboard.lazy import lazy_module
from garboard.model.component import arg_value
from garboard.model.lifecycle import JoinConfiguration
from garboard.model.tunnel import JoinTunnel, parse_servers
from garboard.phases.join.cluster import JoinedCluster, kube_proxy_server
from garboard.phases.join.discovery import ApiConnector
from garboard.phases.join.tunnel import ObservedTunnel, agent_of
from garboard.values import dataclass

if TYPE_CHECKING:
    from garboard.node import agent_in_process
    from garboard.pki import tunnel_credentials
else:  # asyncio, HTTP/2 and certificates, which a join without a tunnel does without
    agent_in_process = lazy_module("garboard.node.agent_in_process")
    tunnel_credentials = lazy_module("garboard.pki.tunnel_credentials")

_PROGRAM = "garboard"


@dataclass(frozen=True, slots=True)
class TunnelWay:
    """A tunnel that is open, from an `entrance` on this machine."""

    tunnel: JoinTunnel
    credentials: "tunnel_credentials.AgentCredentials"
    entrance: tuple[str, int]

    def observe(
        self, config: JoinConfiguration, cluster: JoinedCluster, connector: ApiConnector, machine: NodeMachine
    ) -> ObservedTunnel:
        """Find out what the agent of the node depends on; the tunnel is still open."""
        node, configuration = config.node_registration, cluster.configuration
        address = arg_value(node.kubelet_extra_args, "node-ip") or _own_address(self.tunnel)
        program = find_program(_PROGRAM)
        manager = machine.manager
        return ObservedTunnel(
            agent=agent_of(self.tunnel, configuration, node, address.partition(",")[0]),
            agent_form=self.tunnel.agent_form,
            credentials=self.credentials,
            api_names=agent_in_process.api_server_names(self.entrance),
            interfaces=tuple(interface_networks()),
            program=str(program.absolute()) if program else "",
            reads_unit_files=manager is not None and manager.reads_unit_files,
            advertised=arg_value(configuration.api_server.extra_args, "advertise-address") or "",
            kube_proxy_server=kube_proxy_server(cluster, connector),
        )


def _own_address(tunnel: JoinTunnel) -> str:
    """Return the address that the kubelet will report, as far as that can be told before it runs."""
    return MachineFacts().default_address(prefer_ipv6=False) or address_towards(*parse_servers(tunnel.server)[0])


@contextmanager
def through_tunnel(config: JoinConfiguration, machine: NodeMachine) -> Iterator[TunnelWay | None]:
    """Open the tunnel of a join, if it has one, after its credentials have been checked; nothing is changed."""
    tunnel, name = config.tunnel, config.node_registration.name
    if tunnel is None:
        yield None
        return
    folder = machine.folder(tunnel.credentials_dir)
    credentials = tunnel_credentials.read_agent_credentials(folder, name, datetime.now(UTC))
    options = agent_in_process.agent_options(tunnel, credentials, name)
    with agent_in_process.agent_in_process(options, timeout_s=config.timeouts.discovery.seconds) as entrance:
        yield TunnelWay(tunnel, credentials, entrance)


def with_whole_paths(config: JoinConfiguration) -> JoinConfiguration:
    """Return the configuration of flags, whose folder of credentials may be named from the working directory."""
    if config.tunnel is None:
        return config
    folder = posixpath.join(str(Path.cwd()), config.tunnel.credentials_dir)
    return replace(config, tunnel=replace(config.tunnel, credentials_dir=folder))


def refuse_other_root(config: JoinConfiguration) -> None:
    """Refuse a tunnel for a machine that this process does not run on: its agent could not be started there."""
    if config.tunnel is not None and changed_root() is not None:
        raise BadUsage("--via-tunnel and --rootfs cannot be combined", hint="run garboard join on the machine itself")
