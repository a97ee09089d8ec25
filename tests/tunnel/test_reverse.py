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

from garboard.rpc import TcpTarget, client_tls
from garboard.rpc.aio import AioClient
from garboard.tunnel.agent.run import Agent, run_agent
from garboard.tunnel.destinations import AllowList, NodeTarget
from garboard.tunnel.server.agent_stream import AgentStream
from garboard.tunnel.server.reverse import AgentPeer, LineBudget, ReverseCounts, ReverseObserver, ReverseQuota, guard_of
from garboard.tunnel.server.run import ProxyServer, serve
from garboard.tunnel.wire import packets
from garboard.tunnel.wire.capabilities import STOCK, offer
from garboard.tunnel.wire.packets import decode_packet, encode_packet
from tests.support.tunnel.clients import HttpTunnel, echo_checked, echo_server, silent_destination
from tests.support.tunnel.ends import agent_options, fetch, server_options, until
from tools.harness.certificates import Certificates
from tools.harness.ports import free_ports

LOCAL = "127.0.0.1"


@asynccontextmanager
async def node_and_server(
    certificates: Certificates, front: str, targets: tuple[str, ...], allowed: tuple[str, ...]
) -> AsyncIterator[tuple[ProxyServer, Agent]]:
    server_side = replace(server_options(certificates, front, "http-connect"), allowed=AllowList.parse(allowed))
    async with serve(server_side) as server:
        node = replace(
            agent_options(certificates, server.agent_port),
            targets=tuple(map(NodeTarget.parse, targets)),
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
        port = free_ports(1)[0]
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
        port = free_ports(1)[0]
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
    assert any(line.startswith("agent.targets.refused agent=a1 ") for line in lines)
    assert any(line.startswith("target.refused server=s1 target=127.0.0.1:") for line in lines)
    [recorded] = [line for line in lines if line.startswith("reverse.connection")]
    assert recorded.startswith("reverse.connection id=0 agent=a1 ")
    assert "verdict=denied bytes_sent=0 bytes_received=0" in recorded


def test_every_connection_leaves_one_line(
    certificates: Certificates, front: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        port, closed = free_ports(1)[0], free_ports(1)[0]
        nobody = f"127.0.0.1:{free_ports(1)[0]}"
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


async def _dials_of_an_agent(
    certificates: Certificates, server: ProxyServer, dials: list[packets.DialRequest], agent_id: str = "hostile",
    wait_for: int | None = None,
) -> list[packets.DialResponse]:  # fmt: skip
    """What the server answers to an agent that asks for whatever it likes, and leaves after so many answers."""
    tls = client_tls(certificates.ca, certificate=certificates.client, key=certificates.client_key)
    client = await AioClient.connect(TcpTarget(LOCAL, server.agent_port, tls))
    named = (("agentid", agent_id), ("agentidentifiers", ""), *offer(()))
    call = await client.call("/AgentService/Connect", metadata=named)
    for each in dials:
        await call.send(encode_packet(each))
    answers = [decode_packet(await call.receive() or b"") for _ in range(wait_for or len(dials))]
    await client.close()
    await until(lambda: not server.proxy.streams)
    return [each for each in answers if isinstance(each, packets.DialResponse)]


def audit_lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.name == "garboard.tunnel.audit"]


def test_every_denied_connection_leaves_one_line(
    certificates: Certificates, front: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(count: int) -> None:
        async with serve(server_options(certificates, front, "http-connect")) as server:
            dials = [packets.DialRequest("tcp", f"10.0.0.{number}:22", number) for number in range(count)]
            answers = await _dials_of_an_agent(certificates, server, dials)
            assert len(answers) == count
            assert all("denied" in each.error and each.connect_id == 0 for each in answers)
            assert server.proxy.reverse.denials.of("not_allowed").value == count

    with caplog.at_level(logging.INFO):
        asyncio.run(scenario(90))
    lines = audit_lines(caplog)
    assert [line.split()[6] for line in lines] == [f"target=10.0.0.{number}:22" for number in range(90)]
    assert all("agent=hostile" in line and "verdict=denied" in line for line in lines)


def test_flood_of_denials_is_summed_up_even_when_it_stops(
    certificates: Certificates, front: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with serve(server_options(certificates, front, "http-connect")) as server:
            dials = [packets.DialRequest("tcp", "10.0.0.1:22", number) for number in range(1500)]
            await _dials_of_an_agent(certificates, server, dials)
            await until(lambda: _told(audit_lines(caplog)) == 1500)

    with caplog.at_level(logging.INFO):
        asyncio.run(scenario())
    lines = audit_lines(caplog)
    assert 100 <= sum(line.startswith("reverse.connection") for line in lines) < 1500


def test_lines_are_budgeted_by_the_second() -> None:
    budget = LineBudget(2)
    assert [budget.takes(now) for now in (10.0, 10.1, 10.2, 10.9, 11.0, 11.5, 11.6)] == [
        True, True, False, False, True, True, False,
    ]  # fmt: skip


def test_streams_of_one_cluster_share_a_budget(caplog: pytest.LogCaptureFixture) -> None:
    """An agent that opens more streams, or calls itself by other names, writes no more lines."""

    async def scenario() -> None:
        counts = ReverseCounts()
        for number in range(20):
            observer = ReverseObserver(AgentPeer(f"agent-{number}", "CN=a", "10.0.0.9:1"), counts, AllowList())
            for _ in range(100):
                observer.denied(packets.DialRequest("tcp", "10.0.0.1:1", 1), "not an allowed destination")
        assert len(audit_lines(caplog)) <= 1100  # a new second may have begun in between
        await until(lambda: _told(audit_lines(caplog)) == 2000)

    with caplog.at_level(logging.INFO):
        asyncio.run(scenario())


def _told(lines: list[str]) -> int:
    """How many denials the lines tell of."""
    summed = [int(line.rpartition("more=")[2]) for line in lines if line.startswith("reverse.denials")]
    return sum(line.startswith("reverse.connection") for line in lines) + sum(summed)


def test_denied_destination_never_sees_a_connection(certificates: Certificates, front: str) -> None:
    """A hostile agent asks for it again and again, in every way it can be written; its neighbour's port is allowed."""

    async def scenario() -> None:
        came: list[object] = []

        async def count(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            came.append(writer)
            writer.close()

        async with await asyncio.start_server(count, LOCAL, 0) as denied, echo_server() as address:
            port = denied.sockets[0].getsockname()[1]
            hosts = [
                LOCAL, "localhost", "LOCALHOST.", "[::ffff:127.0.0.1]", "[::1]", "127.1", "0x7f000001", "2130706433",
                "0177.0.0.1", "127.0.0.1.", "127.0.0.1%lo", "0.0.0.0", "[::]", "", f"{address}@127.0.0.1",
            ]  # fmt: skip
            spelt = [f"{host}:{port}" for host in hosts] + [f"{address}:{port}", f"{LOCAL}:0{port}", f"{LOCAL}:{port} "]
            dials = [packets.DialRequest("tcp", text, number) for number, text in enumerate(spelt * 100)]
            side = replace(server_options(certificates, front, "http-connect"), allowed=AllowList.parse([address]))
            async with serve(side) as server:
                answers = await _dials_of_an_agent(certificates, server, dials)
                assert len(answers) == len(dials)
                assert all("denied" in each.error and not each.connect_id for each in answers)
                denials = server.proxy.reverse.denials
                assert denials.of("not_allowed").value + denials.of("malformed").value == len(dials)
                assert server.proxy.reverse.connections.as_json() == {}
            await asyncio.sleep(0.1)
        assert came == []

    asyncio.run(scenario())


def test_agent_cannot_forge_a_line(certificates: Certificates, front: str, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with serve(server_options(certificates, front, "http-connect")) as server:
            spoof = "x verdict=allowed bytes_sent=1"
            dials = [packets.DialRequest("tcp", text, number) for number, text in enumerate((spoof, "a\nb:1", "'a':1"))]
            await _dials_of_an_agent(certificates, server, dials, agent_id=spoof)

    with caplog.at_level(logging.INFO):
        asyncio.run(scenario())
    lines = audit_lines(caplog)
    assert len(lines) == 3
    for line in lines:
        keys = [word.partition("=")[0] for word in line.split()]
        assert keys == [
            "reverse.connection", "id", "agent", "identity", "from", "client", "target", "verdict", "bytes_sent",
            "bytes_received", "duration_s",
        ]  # fmt: skip
        assert " verdict=denied " in line


def test_dial_that_its_client_gave_up_leaves_a_line_too(
    certificates: Certificates, front: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(address: str) -> None:
        port = free_ports(1)[0]
        async with node_and_server(certificates, front, (f"{port}:{address}",), (address,)) as (server, agent):
            _, writer = await asyncio.open_connection(LOCAL, port)
            await until(lambda: agent.ports.tunnels.protocol.pending_dials)
            writer.transport.abort()
            await until(lambda: len(audit_lines(caplog)) == 2)
            assert server.proxy.reverse.connections.of(address, "abandoned").value == 1

    with caplog.at_level(logging.INFO), silent_destination() as address:
        asyncio.run(scenario(address))
    assert f" target={address} verdict=abandoned " in audit_lines(caplog)[1]


def test_spellings_and_addresses_do_not_make_the_counts_grow(certificates: Certificates, front: str) -> None:
    async def scenario() -> None:
        allowed = AllowList.parse(["localhost:1", "127.0.0.0/8:1"])
        async with serve(replace(server_options(certificates, front, "http-connect"), allowed=allowed)) as server:
            spelt = ["localhost:1", "LOCALHOST:1", "localHost:01", *(f"127.0.0.{number}:1" for number in range(50))]
            dials = [packets.DialRequest("tcp", text, number) for number, text in enumerate(spelt)]
            await _dials_of_an_agent(certificates, server, dials)
            assert server.proxy.reverse.connections.as_json() == {
                "127.0.0.0/8:1,refused": 50, "localhost:1,refused": 3
            }  # fmt: skip

    asyncio.run(scenario())


def test_stock_server_is_asked_for_nothing_and_clients_are_reset_at_once(
    certificates: Certificates, front: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that answers no offer; a real one plays the same part in the interop tests."""
    monkeypatch.setattr("garboard.tunnel.server.agent_stream.answer", lambda asked, allowed: ((), STOCK))

    async def scenario() -> None:
        port = free_ports(1)[0]
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
        port = free_ports(1)[0]
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
                targets=(NodeTarget.parse(f"{port}:127.0.0.1:1"),),
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
        port = free_ports(1)[0]
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


@pytest.mark.parametrize(
    "quota", [ReverseQuota(open_per_stream=2), ReverseQuota(open=2)], ids=["of a stream", "of a cluster"]
)
def test_connections_of_nodes_are_bounded(
    certificates: Certificates, front: str, quota: ReverseQuota, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        port = free_ports(1)[0]
        async with (
            echo_server() as address,
            node_and_server(certificates, front, (f"{port}:{address}",), (address,)) as (server, _),
        ):
            server.proxy.reverse.quota = quota
            tunnels = [await local_tunnel(port) for _ in range(2)]
            for tunnel in tunnels:
                await echo_checked(tunnel, 1000)
            assert await is_reset(port)
            assert server.proxy.reverse.denials.of("quota").value == 1
            await tunnels[0].close()
            await until(lambda: server.proxy.reverse.open == 1)
            tunnels[0] = await local_tunnel(port)
            for tunnel in tunnels:
                await echo_checked(tunnel, 1000)
                await tunnel.close()
            await until(lambda: not server.proxy.reverse.open)
            assert server.proxy.reverse.pending == 0

    with caplog.at_level(logging.INFO):
        asyncio.run(scenario())
    assert sum(" verdict=denied " in line for line in audit_lines(caplog)) == 1


@pytest.mark.parametrize(
    "quota", [ReverseQuota(pending_per_stream=3), ReverseQuota(pending=3)], ids=["of a stream", "of a cluster"]
)
def test_dials_for_nodes_are_bounded(certificates: Certificates, front: str, quota: ReverseQuota) -> None:
    async def scenario(address: str) -> None:
        side = replace(server_options(certificates, front, "http-connect"), allowed=AllowList.parse([address]))
        async with serve(side) as server:
            server.proxy.reverse.quota = quota
            dials = [packets.DialRequest("tcp", address, number) for number in range(5)]
            answers = await _dials_of_an_agent(certificates, server, dials, wait_for=2)
            assert all("too many connections" in each.error for each in answers)
            assert server.proxy.reverse.denials.of("quota").value == 2
            await until(lambda: not server.proxy.reverse.pending)
            assert server.proxy.reverse.connections.of(address, "abandoned").value == 3

    with silent_destination() as address:
        asyncio.run(scenario(address))


def test_clients_of_a_node_are_bounded(certificates: Certificates, front: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("garboard.tunnel.agent.listeners.MOST_CLIENTS", 2)

    async def scenario() -> None:
        port = free_ports(1)[0]
        async with (
            echo_server() as address,
            node_and_server(certificates, front, (f"{port}:{address}",), (address,)) as (_, agent),
        ):
            tunnels = [await local_tunnel(port) for _ in range(2)]
            for tunnel in tunnels:
                await echo_checked(tunnel, 1000)
            assert await is_reset(port)
            for tunnel in tunnels:
                await tunnel.close()
            await until(lambda: not agent.ports.clients)
            again = await local_tunnel(port)
            await echo_checked(again, 1000)
            await again.close()

    asyncio.run(scenario())
