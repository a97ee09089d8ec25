"""Our server and our agent together, over real sockets on loopback."""

import asyncio
import contextlib
import gc
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from garboard.rpc import TcpTarget, client_tls
from garboard.tunnel.agent import pool
from garboard.tunnel.agent.run import run_agent
from garboard.tunnel.server.agent_stream import AgentStream
from garboard.tunnel.server.run import ProxyServer, serve
from garboard.tunnel.tls import KeyPair
from garboard.tunnel.wire import packets
from garboard.tunnel.wire.capabilities import WINDOW_BYTES
from garboard.tunnel.wire.flow import MAX_PAYLOAD, StallPolicy
from garboard.tunnel.wire.pipes import LARGE_PAYLOAD
from tests.support.tunnel.clients import (
    GrpcTunnel,
    HttpTunnel,
    Refused,
    Tunnelled,
    echo_checked,
    echo_server,
    open_tunnel,
)
from tests.support.tunnel.ends import agent_options, both_ends, fetch, server_options, until
from tools.harness.certificates import Certificates, make_certificates
from tools.harness.ports import free_ports

MODES = pytest.mark.parametrize("mode", ["grpc", "http-connect"])


def closed_port() -> int:
    return free_ports(1)[0]


@MODES
def test_bytes_come_back_whole_over_many_connections(mode: str, certificates: Certificates, front: str) -> None:
    async def scenario() -> None:
        async with both_ends(certificates, front, mode) as (server, agent), echo_server() as address:

            async def one(seed: int) -> None:
                tunnel = await open_tunnel(mode, front, address)
                await echo_checked(tunnel, 3_000_000 if seed == 0 else 20_000, seed)
                await tunnel.close()

            await asyncio.gather(*(one(seed) for seed in range(40)))
            await until(lambda: not server.proxy.frontends and not agent.pool.open_endpoints)
            [backend] = server.proxy.streams
            await until(lambda: not backend.open)
            assert not backend.pending

    asyncio.run(scenario())


@MODES
def test_failed_dials_say_why(mode: str, certificates: Certificates, front: str) -> None:
    async def scenario() -> None:
        async with both_ends(certificates, front, mode):
            with pytest.raises(Refused, match="connection refused"):
                await open_tunnel(mode, front, f"127.0.0.1:{closed_port()}")
            with pytest.raises(Refused, match="no such host"):
                # A label of 64 letters cannot exist, so that nobody has to be asked for it.
                await open_tunnel(mode, front, f"{'a' * 64}.example:80")
            with pytest.raises(Refused, match="invalid port"):
                await open_tunnel(mode, front, "127.0.0.1")

    asyncio.run(scenario())


def test_http_front_answers_with_the_status_of_the_failure(certificates: Certificates, front: str) -> None:
    async def scenario() -> None:
        async with serve(server_options(certificates, front, "http-connect")):
            with pytest.raises(Refused, match=r"500 .* currently no tunnels available"):
                await HttpTunnel.open(front, "127.0.0.1:1")
            reader, writer = await asyncio.open_unix_connection(front)
            writer.write(b"GET / HTTP/1.1\r\n\r\n")
            assert (await reader.read()).startswith(b"HTTP/1.1 405 ")
            writer.close()

    asyncio.run(scenario())


@MODES
def test_lost_agent_ends_its_connections_and_comes_back(mode: str, certificates: Certificates, front: str) -> None:
    async def scenario() -> None:
        async with both_ends(certificates, front, mode) as (server, agent), echo_server() as address:
            tunnel = await open_tunnel(mode, front, address)
            await echo_checked(tunnel, 1000)
            [link] = server.agents.links
            link.abort("cut by the test")
            assert await tunnel.read() == b""
            await tunnel.close()
            await until(lambda: len(server.proxy.streams) == 1 and len(agent.pool.streams) == 1)
            again = await open_tunnel(mode, front, address)
            await echo_checked(again, 1000)
            await again.close()

    asyncio.run(scenario())


@MODES
def test_connections_that_are_reset_at_any_moment_leave_nothing_behind(
    mode: str, certificates: Certificates, front: str
) -> None:
    def open_files() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    async def scenario() -> None:
        async with both_ends(certificates, front, mode) as (server, agent), echo_server() as address:
            files, tasks = open_files(), len(asyncio.all_tasks())
            outcomes: set[str] = set()

            async def one(number: int) -> None:
                tunnel = asyncio.create_task(open_tunnel(mode, front, address))
                if number % 10:
                    await asyncio.sleep(0.004 * (number % 50))
                else:
                    await tunnel  # on a busy machine none would be open by then
                outcomes.add("opened" if tunnel.done() else "given up")
                if not tunnel.done():
                    tunnel.cancel()
                    return
                await tunnel.result().write(b"x" * 50_000)
                tunnel.result().abort()

            for _ in range(4):
                await asyncio.gather(*(one(number) for number in range(100)))
            await until(lambda: not server.proxy.frontends and not agent.pool.open_endpoints)
            [backend] = server.proxy.streams
            await until(lambda: not backend.open and not backend.pending)
            gc.collect()
            assert outcomes == {"opened", "given up"}
            await until(lambda: len(asyncio.all_tasks()) <= tasks and open_files() <= files)

    asyncio.run(scenario())


def test_close_request_is_answered_after_the_data(certificates: Certificates, front: str) -> None:
    """An upload followed at once by its close loses no byte, and the close is confirmed."""

    async def scenario() -> None:
        received = bytearray()
        done = asyncio.Event()

        async def collect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while data := await reader.read(65536):
                received.extend(data)
            writer.close()
            done.set()

        endpoint = await asyncio.start_server(collect, "127.0.0.1", 0)
        address = f"127.0.0.1:{endpoint.sockets[0].getsockname()[1]}"
        async with both_ends(certificates, front, "grpc"), endpoint:
            tunnel = await GrpcTunnel.open(front, address)
            await tunnel.write(b"x" * 2_000_000)
            await tunnel.say(packets.CloseRequest(tunnel.connect_id))
            assert await tunnel.read() == b""
            await asyncio.wait_for(done.wait(), 10)
            assert len(received) == 2_000_000
            await tunnel.close()

    asyncio.run(scenario())


@contextlib.asynccontextmanager
async def endless_source() -> AsyncIterator[str]:
    """An address that sends as fast as it can, for ever."""

    async def pour(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while True:
                writer.write(b"x" * 65536)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(pour, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


@MODES
def test_stalled_reader_of_a_stock_agent_is_closed_alone(
    mode: str, certificates: Certificates, front: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "offer", lambda _targets: ())

    async def scenario() -> None:
        stall_policy = StallPolicy(buffer_bytes=256 * 1024, stall_s=0.5, step_stall_s=0.5)
        async with (
            both_ends(certificates, front, mode, stall_policy=stall_policy) as (server, _),
            endless_source() as source,
            echo_server() as echo,
        ):
            neighbour = await open_tunnel(mode, front, echo)
            stalled = await open_tunnel(mode, front, source)
            await until(lambda: server.proxy.stalled == 1)
            await echo_checked(neighbour, 100_000)
            [backend] = server.proxy.streams
            await until(lambda: len(backend.open) == 1)
            await neighbour.close()
            await stalled.close()

    asyncio.run(scenario())


@MODES
def test_stalled_reader_costs_its_neighbours_nothing_between_our_own_ends(
    mode: str, certificates: Certificates, front: str
) -> None:
    async def scenario() -> None:
        stall_policy = StallPolicy(buffer_bytes=256 * 1024, stall_s=0.3)
        async with (
            both_ends(certificates, front, mode, stall_policy=stall_policy) as (server, agent),
            endless_source() as source,
            echo_server() as echo,
        ):
            neighbour = await open_tunnel(mode, front, echo)
            stalled = await open_tunnel(mode, front, source)
            await until(lambda: _queued(server) > 0)
            await asyncio.sleep(1)
            for seed in range(20):
                await echo_checked(neighbour, 20_000, seed)
            assert _queued(server) <= WINDOW_BYTES + LARGE_PAYLOAD  # one packet may begin with the last byte of credit
            assert server.proxy.stalled == 0  # it harms nobody, and may read on when it likes
            assert len(await stalled.read()) > 0
            await neighbour.close()
            stalled.abort()
            await until(lambda: not server.proxy.frontends and not agent.pool.open_endpoints)
            [stream] = server.proxy.streams.values()
            assert isinstance(stream, AgentStream)
            await until(lambda: not stream.sender.pipes)

    asyncio.run(scenario())


def test_reader_that_takes_nothing_is_cut_when_too_much_waits_at_the_server(
    certificates: Certificates, front: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        policy = StallPolicy(most_bytes=WINDOW_BYTES)
        async with (
            both_ends(certificates, front, "http-connect", stall_policy=policy) as (server, _),
            endless_source() as source,
            echo_server() as echo,
        ):
            neighbour = await open_tunnel("http-connect", front, echo)
            stalled = [await open_tunnel("http-connect", front, source) for _ in range(3)]
            await until(lambda: len(server.proxy.frontends) < 4, 30)
            await echo_checked(neighbour, 100_000)
            for each in (*stalled, neighbour):
                await each.close()

    asyncio.run(scenario())
    assert [line for line in caplog.messages if line.startswith("connections.cut count=")]


def test_endpoint_that_takes_nothing_is_cut_when_too_much_waits_at_the_agent(
    certificates: Certificates, front: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with serve(server_options(certificates, front, "http-connect")) as server, echo_server() as echo:
            options = agent_options(certificates, server.agent_port)
            async with run_agent(replace(options, stall_policy=StallPolicy(most_bytes=WINDOW_BYTES))) as agent:
                await until(lambda: server.proxy.streams)
                with deaf_endpoint() as address:
                    stalled = [await open_tunnel("http-connect", front, address) for _ in range(3)]
                    pouring = [asyncio.create_task(pour_into(each)) for each in stalled]
                    await until(lambda: agent.pool.open_endpoints < 3, 30)
                    neighbour = await open_tunnel("http-connect", front, echo)
                    await echo_checked(neighbour, 100_000)
                    for task in pouring:
                        task.cancel()
                    for each in (*stalled, neighbour):
                        each.abort()

    asyncio.run(scenario())
    assert [line for line in caplog.messages if line.startswith("connections.cut count=")]


@contextlib.contextmanager
def deaf_endpoint() -> Iterator[str]:
    """It takes connections and reads nothing."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield f"127.0.0.1:{listener.getsockname()[1]}"


async def pour_into(tunnel: Tunnelled) -> None:
    with contextlib.suppress(OSError):
        while True:
            await tunnel.write(b"x" * 65536)


def test_api_server_gets_packets_that_its_own_slow_client_takes_in_time(certificates: Certificates, front: str) -> None:
    """It gives a connection up if a packet waits for ten seconds; between our own ends they are four times as large."""

    async def scenario() -> None:
        async with both_ends(certificates, front, "grpc"), endless_source() as source:
            tunnel = await open_tunnel("grpc", front, source)
            sizes = [len(await tunnel.read()) for _ in range(300)]
            assert max(sizes) == MAX_PAYLOAD
            tunnel.abort()

    asyncio.run(scenario())


def _queued(server: ProxyServer) -> int:
    return sum(front.outflow.queued_bytes for front in server.proxy.frontends.values())


def test_front_end_over_tcp_asks_for_a_client_certificate(
    certificates: Certificates, front: str, tmp_path: Path
) -> None:
    keys = KeyPair(certificates.server, certificates.server_key, certificates.ca)
    where = {"uds_name": "", "server_port": closed_port(), "server_bind_address": "127.0.0.1", "server_keys": keys}

    async def scenario() -> None:
        tls = client_tls(certificates.ca, certificate=certificates.client, key=certificates.client_key)
        async with both_ends(certificates, front, "grpc", **where) as (server, _), echo_server() as address:
            tunnel = await GrpcTunnel.open(TcpTarget("127.0.0.1", server.server_port, tls), address)
            await echo_checked(tunnel, 100_000)
            await tunnel.close()
        async with both_ends(certificates, front, "http-connect", **where) as (server, _), echo_server() as address:
            plain = ssl.create_default_context(cafile=certificates.ca)
            with pytest.raises((OSError, asyncio.IncompleteReadError)):
                await HttpTunnel.over(
                    *await asyncio.open_connection("127.0.0.1", server.server_port, ssl=plain), address
                )
            plain.load_cert_chain(certificates.client, certificates.client_key)
            streams = await asyncio.open_connection("127.0.0.1", server.server_port, ssl=plain)
            http = await HttpTunnel.over(*streams, address)
            await echo_checked(http, 100_000)
            await http.close()

    asyncio.run(scenario())


def test_agent_with_a_strange_certificate_is_not_let_in(certificates: Certificates, front: str, tmp_path: Path) -> None:
    other = make_certificates(tmp_path)

    async def scenario() -> None:
        async with serve(server_options(certificates, front, "grpc")) as server:
            options = agent_options(certificates, server.agent_port)
            strange = type(options)(
                agent_id="x", proxy_server_port=server.agent_port, ca_cert=certificates.ca, agent_cert=other.client,
                agent_key=other.client_key, health_server_port=0, admin_server_port=0, sync_interval_s=0.05,
            )  # fmt: skip
            async with run_agent(strange) as agent:
                await asyncio.sleep(0.3)
                assert not agent.pool.streams
                assert not server.proxy.streams

    asyncio.run(scenario())


def test_readiness_and_metrics_tell_what_is_connected(certificates: Certificates, front: str) -> None:
    async def scenario() -> None:
        async with serve(server_options(certificates, front, "http-connect")) as server:
            assert await fetch(server.health_port, "/healthz") == (200, "ok")
            assert await fetch(server.health_port, "/readyz") == (500, "no connection to any proxy agent")
            async with run_agent(agent_options(certificates, server.agent_port)) as agent:
                await until(lambda: agent.pool.streams)
                assert await fetch(server.health_port, "/readyz") == (200, "ok")
                assert await fetch(agent.health_port, "/readyz") == (200, "ok")
                with pytest.raises(Refused, match="502"):
                    await HttpTunnel.open(front, f"127.0.0.1:{closed_port()}")
                _, text = await fetch(server.health_port, "/metrics")
                prefix = "konnectivity_network_proxy_server_"
                assert f'{prefix}dial_failure_count{{reason="error_response"}} 1\n' in text
                assert f'{prefix}ready_backends{{proxy_strategy="default"}} 1\n' in text
                assert f'{prefix}stream_packets_total{{segment="to_agent",packet_type="DIAL_REQ"}} 1\n' in text
                _, text = await fetch(agent.health_port, "/metrics")
                prefix = "konnectivity_network_proxy_agent_"
                assert f"{prefix}open_server_connections 1\n" in text
                assert f'{prefix}endpoint_dial_failure_total{{reason="unknown"}} 1\n' in text
            await until(lambda: not server.proxy.streams)

    asyncio.run(scenario())


def test_draining_agent_still_serves_when_it_is_the_only_one(certificates: Certificates, front: str) -> None:
    async def scenario() -> None:
        async with both_ends(certificates, front, "grpc") as (server, agent), echo_server() as address:
            agent.pool.drain()
            [backend] = server.proxy.streams
            await until(lambda: backend.is_draining)
            tunnel = await GrpcTunnel.open(front, address)
            await echo_checked(tunnel, 1000)
            await tunnel.close()

    asyncio.run(scenario())


@MODES
def test_server_waits_for_open_connections_and_cuts_them_at_the_deadline(
    mode: str, certificates: Certificates, front: str
) -> None:
    async def scenario() -> None:
        changes = {"graceful_shutdown_s": 0.4}
        async with both_ends(certificates, front, mode, **changes) as (server, _), echo_server() as address:
            tunnel = await open_tunnel(mode, front, address)
            stopping = asyncio.create_task(server.stop())
            await asyncio.sleep(0.1)
            await echo_checked(tunnel, 1000)
            assert await stopping == 1

    asyncio.run(scenario())
