"""An agent of the tunnel inside this process: how discovery gets through the tunnel before anything is changed.

It listens on a loopback port that was free, and servers are told to prefer other agents: it ends with discovery.
"""

import asyncio
import logging
import os
import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path

from garboard.errors import ClusterUnreachable
from garboard.model.tunnel import JoinTunnel, parse_servers
from garboard.net.connect import Route, open_connection
from garboard.net.tls import new_client_context
from garboard.pki.chain import names_of, read_certificates
from garboard.pki.names import AltNames
from garboard.pki.tunnel_credentials import AgentCredentials
from garboard.tunnel.agent.options import AgentOptions
from garboard.tunnel.agent.run import Agent, run_agent
from garboard.tunnel.channel import Channel
from garboard.tunnel.destinations import Destination, NodeTarget

LOOPBACK = "127.0.0.1"
_LOOK_AGAIN_S = 0.05
_HANDSHAKE_S = 10.0


def agent_options(tunnel: JoinTunnel, credentials: AgentCredentials, node_name: str) -> AgentOptions:
    """Return the options of the agent; every port of it is one that is free."""
    ca, certificate, key = map(Path, credentials.paths)
    servers = parse_servers(tunnel.server)
    hosts = ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in servers)
    return AgentOptions(
        agent_id=f"{node_name}-joining",
        proxy_server_host=hosts,
        ca_cert=ca,
        agent_cert=certificate,
        agent_key=key,
        environment=os.environ,
        health_server_host=LOOPBACK,
        health_server_port=0,
        admin_server_port=0,
        sync_interval_s=0.2,
        sync_interval_cap_s=2.0,
        bind_address=LOOPBACK,
        targets=(NodeTarget(0, Destination.parse(tunnel.api_server)),),
    )


@contextmanager
def agent_in_process(options: AgentOptions, *, timeout_s: float) -> Iterator[tuple[str, int]]:
    """Run the agent while the context is open; yield where the API server is reached through it."""
    logging.getLogger("garboard.tunnel").addHandler(logging.NullHandler())  # why it fails is told by the error
    opened: Future[int] = Future()
    running = _Running(options, timeout_s, opened)
    thread = threading.Thread(target=running.run, name="tunnel-agent", daemon=True)
    thread.start()
    try:
        yield LOOPBACK, opened.result()
    finally:
        running.stop()
        thread.join()


class _Running:
    """The event loop of the agent, in a thread of its own."""

    def __init__(self, options: AgentOptions, timeout_s: float, opened: "Future[int]") -> None:
        self._options = options
        self._timeout_s = timeout_s
        self._opened = opened
        self._loop = asyncio.new_event_loop()
        self._stopping = asyncio.Event()

    def run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        except BaseException as error:  # noqa: BLE001  # whoever waits for the port gets it
            if not self._opened.done():
                self._opened.set_exception(error)
        finally:
            self._loop.close()

    def stop(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._stopping.set)
        except RuntimeError:
            return  # it has ended by itself

    async def _serve(self) -> None:
        target = self._options.targets[0]
        async with run_agent(self._options) as agent:
            await self._until_open(agent)
            if self._stopping.is_set():
                return
            self._opened.set_result(agent.ports.port_of(target))
            told: set[Channel] = set()
            while not self._stopping.is_set():
                _tell_servers(agent, told)
                await _until(self._stopping)

    async def _until_open(self, agent: Agent) -> None:
        until = self._loop.time() + self._timeout_s
        while (failures := agent.ports.failures()) and not self._stopping.is_set():
            if self._loop.time() > until:
                why = agent.pool.last_failure or next(iter(failures.values()))
                raise _not_open(self._options, why)
            await _until(self._stopping)


async def _until(stopping: asyncio.Event) -> None:
    try:
        async with asyncio.timeout(_LOOK_AGAIN_S):
            await stopping.wait()
    except TimeoutError:
        return


def _tell_servers(agent: Agent, told: "set[Channel]") -> None:
    """Have servers that have not been told yet prefer other agents, also one that was lost and has come back."""
    for stream in set(agent.pool.streams.values()) - told:
        stream.drain()
        told.add(stream)


def _not_open(options: AgentOptions, why: str) -> ClusterUnreachable:
    destination = options.targets[0].destination
    return ClusterUnreachable(
        f"the tunnel at {options.proxy_server_host} does not lead to the API server {destination}: {why}",
        hint="on a control-plane node: garboard tunnel status; the server needs "
        f"--allowed-destination={destination} (--tunnel-api-server names another one)",
        error_class="tunnel-closed",
    )


def api_server_names(entrance: tuple[str, int]) -> AltNames:
    """Return the names that the certificate of the API server behind a tunnel is valid for."""
    try:
        plain = open_connection(Route(*entrance), _HANDSHAKE_S)
        with new_client_context(b"", is_unverified=True).wrap_socket(plain) as connection:
            data = connection.getpeercert(binary_form=True)
    except OSError as error:
        raise ClusterUnreachable(
            f"the API server behind the tunnel does not show its certificate: {error.strerror or error}",
            hint="on a control-plane node: kubectl get --raw /readyz",
        ) from error
    return names_of(read_certificates(ssl.DER_cert_to_PEM_cert(data or b"").encode())[0])
