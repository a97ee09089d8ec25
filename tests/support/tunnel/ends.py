"""Both ends of a tunnel in this process, on loopback."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

from garboard.tunnel.agent.options import AgentOptions
from garboard.tunnel.agent.run import Agent, run_agent
from garboard.tunnel.server.options import ServerOptions
from garboard.tunnel.server.run import ProxyServer, serve
from garboard.tunnel.server.tenants import Mode
from garboard.tunnel.tls import KeyPair
from tools.harness.certificates import Certificates


def server_options(certificates: Certificates, socket_path: str, mode: str) -> ServerOptions:
    return ServerOptions(
        server_id="s1",
        mode=Mode(mode),
        uds_name=socket_path,
        server_port=0,
        cluster_keys=KeyPair(certificates.server, certificates.server_key, certificates.ca),
        agent_bind_address="127.0.0.1",
        agent_port=0,
        health_bind_address="127.0.0.1",
        health_port=0,
        admin_port=0,
    )


def agent_options(certificates: Certificates, port: int, agent_id: str = "a1") -> AgentOptions:
    return AgentOptions(
        agent_id=agent_id,
        proxy_server_port=port,
        ca_cert=certificates.ca,
        agent_cert=certificates.client,
        agent_key=certificates.client_key,
        health_server_host="127.0.0.1",
        health_server_port=0,
        admin_server_port=0,
        sync_interval_s=0.05,
        sync_interval_cap_s=0.2,
    )


@contextlib.asynccontextmanager
async def both_ends(
    certificates: Certificates, socket_path: str, mode: str, **changes: object
) -> AsyncIterator[tuple[ProxyServer, Agent]]:
    """A server and an agent that is connected to it; `changes` are for the server."""
    options = replace(server_options(certificates, socket_path, mode), **changes)  # type: ignore[arg-type]
    async with serve(options) as server, run_agent(agent_options(certificates, server.agent_port)) as agent:
        await until(lambda: len(server.proxy.streams) == 1)
        yield server, agent


async def until(is_true: Callable[[], object], timeout_s: float = 10.0) -> None:
    async with asyncio.timeout(timeout_s):
        while not is_true():
            await asyncio.sleep(0.01)


async def fetch(port: int, path: str) -> tuple[int, str]:
    """A page of a health port: status and text."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.0\r\nHost: x\r\n\r\n".encode())
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    return int(head.split()[1]), body.decode()
