"""From the node to the control plane: targets of an agent, and what a server allows."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from garboard.tunnel.agent.run import Agent, run_agent
from garboard.tunnel.capabilities import STOCK
from garboard.tunnel.destinations import AllowList, Target
from garboard.tunnel.server.agent_stream import AgentStream
from garboard.tunnel.server.reverse import guard_of
from garboard.tunnel.server.run import ProxyServer, serve
from tests.rpc.certificates import Certificates
from tests.tunnel.clients import HttpTunnel, echo_checked, echo_server
from tests.tunnel.ends import agent_options, fetch, server_options, until

LOCAL = "127.0.0.1"


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind((LOCAL, 0))
        return int(taken.getsockname()[1])


@asynccontextmanager
async def node_and_server(
    certificates: Certificates, front: str, targets: tuple[str, ...], allowed: tuple[str, ...]
) -> AsyncIterator[tuple[ProxyServer, Agent]]:
    server_side = replace(server_options(certificates, front, "http-connect"), allowed=AllowList.parse(allowed))
    async with serve(server_side) as server:
        node = replace(
            agent_options(certificates, server.agent_port),
            targets=tuple(map(Target.parse, targets)),
            bind_address=LOCAL,
        )
        async with run_agent(node) as agent:
            await until(lambda: server.proxy.streams and agent.ports._listening.keys() == set(agent.ports.targets))
            yield server, agent


async def local_tunnel(port: int) -> HttpTunnel:
    return HttpTunnel(*await asyncio.open_connection(LOCAL, port))


async def is_reset(port: int) -> bool:
    """Whether a client of the port is cut off; it must not see an orderly end, which would look like an answer."""
    reader, writer = await asyncio.open_connection(LOCAL, port)
    try:
        await reader.read()
    except ConnectionResetError:
        return True
    finally:
        writer.close()
    return False


def test_bytes_come_back_whole_both_ways_on_one_stream(certificates: Certificates, front: str) -> None:
    async def scenario() -> None:
        port = free_port()
        async with (
            echo_server() as address,
            node_and_server(certificates, front, (f"{port}:{address}",), (address,)) as (server, agent),
        ):
            assert (await fetch(agent.health_port, "/readyz"))[0] == 200

            async def reverse(seed: int) -> None:
                tunnel = await local_tunnel(port)
                await echo_checked(tunnel, 3_000_000 if not seed else 20_000, seed)
                await tunnel.close()

            async def forward(seed: int) -> None:
                tunnel = await HttpTunnel.open(front, address)
                await echo_checked(tunnel, 3_000_000 if not seed else 20_000, seed)
                await tunnel.close()

            await asyncio.gather(*(each(seed) for seed in range(20) for each in (reverse, forward)))
            await until(lambda: not server.proxy.open_connections and not agent.open_connections)
            [stream] = server.proxy.streams.values()
            assert isinstance(stream, AgentStream)
            await until(lambda: not stream.sender.pipes)
            _, text = await fetch(server.health_port, "/metrics")
            prefix = "konnectivity_network_proxy_server_"
            assert f'{prefix}reverse_connections_total{{target="{address}",verdict="allowed"}} 20\n' in text
            _, text = await fetch(agent.health_port, "/metrics")
            prefix = "konnectivity_network_proxy_agent_"
            assert f'{prefix}target_dials_total{{target="{address}",outcome="accepted"}} 20\n' in text
            assert f'{prefix}target_servers{{target="{port}:{address}"}} 1\n' in text

    asyncio.run(scenario())


def test_denied_target_is_reset_recorded_and_seen_in_readiness(
    certificates: Certificates, front: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        port = free_port()
        async with (
            echo_server() as address,
            node_and_server(certificates, front, (f"{port}:{address}",), ("127.0.0.1:1",)) as (server, agent),
        ):
            status, text = await fetch(agent.health_port, "/readyz")
            assert status == 503
            assert f"[-]target {port}:{address} failed: not an allowed destination of s1\n" in text
            assert await is_reset(port)
            # An agent that does not keep to the answer is denied by the server all the same.
            agent.ports.servers.backends[0].refused = frozenset()
            assert await is_reset(port)
            assert server.proxy.reverse.denials.of("not_allowed").value == 1
            tunnel = await HttpTunnel.open(front, address)  # the other direction is not concerned
            await echo_checked(tunnel, 10_000)
            await tunnel.close()

    with caplog.at_level(logging.INFO):
        asyncio.run(scenario())
    lines = [record.getMessage() for record in caplog.records]
    assert any(line.startswith("agent.targets.refused agent=a1 targets=127.0.0.1:") for line in lines)
    assert any(line.startswith("target.refused server=s1 target=127.0.0.1:") for line in lines)
    [recorded] = [line for line in lines if line.startswith("reverse.connection")]
    assert recorded.startswith("reverse.connection agent=a1 target=127.0.0.1:")
    assert "verdict=denied bytes_sent=0 bytes_received=0" in recorded


def test_every_connection_leaves_one_line(
    certificates: Certificates, front: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        port, closed = free_port(), free_port()
        nobody = f"127.0.0.1:{free_port()}"
        async with (
            echo_server() as address,
            node_and_server(certificates, front, (f"{port}:{address}", f"{closed}:{nobody}"), (address, nobody)) as (
                server,
                _,
            ),
        ):
            tunnel = await local_tunnel(port)
            await echo_checked(tunnel, 1234)
            await tunnel.close()
            assert await is_reset(closed)
            await until(lambda: not server.proxy.reverse.open)

    with caplog.at_level(logging.INFO):
        asyncio.run(scenario())
    lines = [each.getMessage() for each in caplog.records if each.getMessage().startswith("reverse.connection")]
    assert len(lines) == 2
    assert any("verdict=allowed bytes_sent=1234 bytes_received=1234 duration_s=" in line for line in lines)
    assert any("verdict=refused bytes_sent=0 bytes_received=0" in line for line in lines)


def test_stock_server_is_asked_for_nothing_and_clients_are_reset_at_once(
    certificates: Certificates, front: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that answers no offer; a real one plays the same part in the interop tests."""
    monkeypatch.setattr("garboard.tunnel.server.agent_stream.answer", lambda asked, allowed: ((), STOCK))

    async def scenario() -> None:
        port = free_port()
        async with (
            echo_server() as address,
            node_and_server(certificates, front, (f"{port}:{address}",), (address,)) as (server, agent),
        ):
            assert await is_reset(port)
            status, text = await fetch(agent.health_port, "/readyz")
            assert (status, "no connected server takes connections of nodes" in text) == (503, True)
            tunnel = await HttpTunnel.open(front, address)
            await echo_checked(tunnel, 500_000)
            await tunnel.close()
            seen = server.proxy.packets.lines("packets")
            assert not [line for line in seen if "from_agent" in line and ("CREDIT" in line or "DIAL_REQ" in line)]

    asyncio.run(scenario())


def test_lost_server_resets_clients_and_its_successor_serves_them(certificates: Certificates, front: str) -> None:
    async def scenario() -> None:
        port = free_port()
        async with (
            echo_server() as address,
            node_and_server(certificates, front, (f"{port}:{address}",), (address,)) as (server, agent),
        ):
            tunnel = await local_tunnel(port)
            await echo_checked(tunnel, 1000)
            [link] = server.agents.links
            link.abort("cut by the test")
            assert await tunnel.read() == b""
            await until(lambda: agent.ports.servers.backends)
            again = await local_tunnel(port)
            await echo_checked(again, 1000)
            await again.close()
            await tunnel.close()
            await until(lambda: not server.proxy.reverse.open and not agent.ports.clients)

    asyncio.run(scenario())


def test_target_listens_as_soon_as_its_port_is_free(certificates: Certificates, front: str) -> None:
    async def scenario() -> None:
        taken = socket.create_server((LOCAL, 0))
        port = taken.getsockname()[1]
        async with serve(server_options(certificates, front, "grpc")) as server:
            node = replace(
                agent_options(certificates, server.agent_port),
                targets=(Target.parse(f"{port}:127.0.0.1:1"),),
                bind_address=LOCAL,
            )
            async with run_agent(node) as agent:
                await until(lambda: agent.ports._reasons)
                _, text = await fetch(agent.health_port, "/readyz")
                assert "failed: cannot listen: Address already in use" in text
                taken.close()
                await until(lambda: agent.ports._listening)

    asyncio.run(scenario())


ADDRESSES = st.text(max_size=30) | st.builds(
    lambda host, port: f"{host}:{port}",
    st.sampled_from(
        ["127.0.0.1", "localhost", "api", "API", "api.", "api.x", "10.0.0.1", "10.1.2.3", "[::1]", "[::ffff:10.0.0.1]",
         "0x0a000001", "167772161", "10.1", "", "[fd00::1]", "fd00::1", "api%00", "api\n", "xapi"]
    ),
    st.sampled_from(["6443", "443", "06443", "6443 ", "+6443", "-1", "0", "65536", "", "6443/tcp"]),
)  # fmt: skip


@given(ADDRESSES)
@settings(max_examples=500)
def test_whatever_an_agent_asks_for_only_what_is_listed_is_dialled(address: str) -> None:
    guard = guard_of(AllowList.parse(["api:6443", "10.0.0.0/24:443"]))
    if not guard(address):
        assert address.lower() in {"api:6443", "api.:6443", "api:06443", "api.:06443", "10.0.0.1:443"}


def test_ends_that_stop_count_what_they_cut(certificates: Certificates, front: str) -> None:
    async def scenario() -> None:
        port = free_port()
        async with (
            echo_server() as address,
            node_and_server(certificates, front, (f"{port}:{address}",), (address,)) as (server, agent),
        ):
            tunnel = await local_tunnel(port)
            await echo_checked(tunnel, 1000)
            assert agent.open_connections == 1
            assert await server.stop() == 1
            assert await tunnel.read() == b""
            await tunnel.close()

    asyncio.run(scenario())
