"""How connections end through both ends: whole if they end cleanly, and with a reset if they do not."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from garboard.rpc import Http2Config, RpcConfig
from garboard.tunnel.agent import pool
from garboard.tunnel.agent.run import Agent, run_agent
from garboard.tunnel.destinations import AllowList, NodeTarget
from garboard.tunnel.frontend.protocol import TunnelTimeouts
from garboard.tunnel.server import cluster
from garboard.tunnel.server.run import ProxyServer, serve
from garboard.tunnel.wire import sockets
from garboard.tunnel.wire.flow import StallPolicy
from tests.support.tunnel.clients import GrpcTunnel, open_tunnel
from tests.support.tunnel.ends import agent_options, both_ends, server_options, until
from tools.harness.certificates import Certificates
from tools.harness.ports import free_ports

LOCAL = "127.0.0.1"


@contextlib.asynccontextmanager
async def source(size: int) -> AsyncIterator[str]:
    """An address that sends so many bytes and closes; as many as it can for ever if it is 0."""

    async def pour(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        left = size or 1 << 60
        with contextlib.suppress(OSError):
            while left:
                piece = min(left, 64 * 1024)
                writer.write(b"x" * piece)
                left -= piece
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(pour, LOCAL, 0)
    try:
        yield f"{LOCAL}:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


class Drain:
    """An endpoint that reads when it is told to, and counts; `was_clean` is how the connection ended."""

    def __init__(self) -> None:
        self.size = 0
        self.was_clean: bool | None = None
        self.may_read = asyncio.Event()
        self.address = ""

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator["Drain"]:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)
        listener.bind((LOCAL, 0))
        server = await asyncio.start_server(self._read, sock=listener, limit=4096)
        self.address = f"{LOCAL}:{server.sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            server.close()

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self.may_read.wait()
        try:
            while data := await reader.read(256 * 1024):
                self.size += len(data)
            self.was_clean = True
        except ConnectionResetError:
            self.was_clean = False
        writer.close()


@contextlib.asynccontextmanager
async def node_and_server(
    certificates: Certificates, front: str, destination: str
) -> AsyncIterator[tuple[ProxyServer, Agent, int]]:
    """Both ends, and the port on the node that leads to the destination."""
    [port] = free_ports(1)
    side = replace(server_options(certificates, front, "http-connect"), allowed=AllowList.parse([destination]))
    async with serve(side) as server:
        options = agent_options(certificates, server.agent_port)
        node = replace(options, targets=(NodeTarget.parse(f"{port}:{destination}"),), bind_address=LOCAL)
        async with run_agent(node) as agent:
            await until(lambda: agent.ports.servers.backends and agent.ports._listening)
            yield server, agent, port


async def read_rest(reader: asyncio.StreamReader) -> tuple[int, bool]:
    """How many bytes came, and whether the end was a clean one."""
    size = 0
    try:
        while data := await reader.read(256 * 1024):
            size += len(data)
    except ConnectionResetError:
        return size, False
    return size, True


def test_download_of_a_slow_reader_comes_whole_after_its_source_has_closed(
    certificates: Certificates, front: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sockets, "FLUSH_STALL_S", 3.0)

    async def scenario() -> None:
        async with both_ends(certificates, front, "http-connect") as (_, agent), source(1_500_000) as address:
            tunnel = await open_tunnel("http-connect", front, address)
            await until(lambda: not agent.pool.open_endpoints)  # all of it is in the tunnel
            size = 0
            while data := await tunnel.read():
                size += len(data)
                await asyncio.sleep(0.2)
            assert size == 1_500_000
            await tunnel.close()

    asyncio.run(scenario())


def test_upload_to_an_endpoint_that_pauses_comes_whole_after_its_client_has_closed(
    certificates: Certificates, front: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time for an answer to the close begins when there is nothing left that has to be sent before it."""
    monkeypatch.setattr(cluster, "TunnelTimeouts", lambda dial_s: TunnelTimeouts(dial_s=dial_s, close_s=0.3))

    async def scenario() -> None:
        endpoint = Drain()
        async with both_ends(certificates, front, "http-connect") as (server, _), endpoint.listening():
            tunnel = await open_tunnel("http-connect", front, endpoint.address)
            [stream] = server.proxy.streams.values()
            sent = 0
            while not stream.queued_bytes:  # until the endpoint has no more room for it, nor the tunnel
                await tunnel.write(b"x" * 16_384)
                sent += 16_384
                await asyncio.sleep(0)
            await tunnel.close()
            await asyncio.sleep(1)
            endpoint.may_read.set()
            await until(lambda: endpoint.was_clean is not None, 60)
            assert (endpoint.size, endpoint.was_clean) == (sent, True)

    asyncio.run(scenario())


def test_request_that_ends_before_its_dial_is_answered_is_delivered(certificates: Certificates, front: str) -> None:
    async def scenario() -> None:
        endpoint = Drain()
        endpoint.may_read.set()
        async with endpoint.listening(), node_and_server(certificates, front, endpoint.address) as (_, _, port):
            reader, writer = await asyncio.open_connection(LOCAL, port)
            writer.write(b"x" * 1000)
            writer.write_eof()
            await until(lambda: endpoint.was_clean is not None)
            assert (endpoint.size, endpoint.was_clean) == (1000, True)
            assert await reader.read() == b""
            writer.close()

    asyncio.run(scenario())


def test_client_whose_link_is_lost_is_reset(certificates: Certificates, front: str) -> None:
    async def scenario() -> None:
        async with source(0) as address, node_and_server(certificates, front, address) as (server, _, port):
            reader, writer = await asyncio.open_connection(LOCAL, port, limit=4096)
            await reader.readexactly(100_000)
            for link in list(server.agents.links):
                link.abort("cut by the test")
            _, was_clean = await read_rest(reader)
            assert not was_clean
            writer.close()

    asyncio.run(scenario())


def test_endpoint_whose_link_is_lost_is_reset_after_what_came(certificates: Certificates, front: str) -> None:
    async def scenario() -> None:
        endpoint = Drain()
        endpoint.may_read.set()
        async with both_ends(certificates, front, "http-connect") as (server, _), endpoint.listening():
            tunnel = await open_tunnel("http-connect", front, endpoint.address)
            await tunnel.write(b"x" * 1000)
            await until(lambda: endpoint.size == 1000)
            for link in list(server.agents.links):
                link.abort("cut by the test")
            await until(lambda: endpoint.was_clean is not None)
            assert (endpoint.size, endpoint.was_clean) == (1000, False)
            await tunnel.close()

    asyncio.run(scenario())


def test_client_of_an_endpoint_that_is_reset_is_reset(certificates: Certificates, front: str) -> None:
    async def scenario() -> None:
        async def answer_and_reset(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"half")
            await writer.drain()
            await asked.wait()
            sockets.reset(writer.transport)

        asked = asyncio.Event()
        endpoint = await asyncio.start_server(answer_and_reset, LOCAL, 0)
        address = f"{LOCAL}:{endpoint.sockets[0].getsockname()[1]}"
        async with endpoint, node_and_server(certificates, front, address) as (_, _, port):
            reader, writer = await asyncio.open_connection(LOCAL, port)
            assert await reader.readexactly(4) == b"half"
            asked.set()
            assert await read_rest(reader) == (0, False)
            writer.close()

    asyncio.run(scenario())


def test_connections_that_a_stopping_server_cuts_are_reset_at_both_outer_ends(
    certificates: Certificates, front: str
) -> None:
    async def scenario() -> None:
        endpoint = Drain()
        endpoint.may_read.set()
        async with endpoint.listening(), node_and_server(certificates, front, endpoint.address) as (server, _, port):
            reader, writer = await asyncio.open_connection(LOCAL, port)
            writer.write(b"x" * 1000)
            await until(lambda: endpoint.size == 1000)
            assert await server.stop() == 1
            await until(lambda: endpoint.was_clean is not None)
            assert not endpoint.was_clean
            assert await read_rest(reader) == (0, False)
            writer.close()

    asyncio.run(scenario())


def test_endpoints_of_an_agent_that_stops_are_reset(certificates: Certificates, front: str) -> None:
    async def scenario() -> None:
        endpoint = Drain()
        endpoint.may_read.set()
        async with endpoint.listening(), serve(server_options(certificates, front, "http-connect")) as server:
            async with run_agent(agent_options(certificates, server.agent_port)):
                await until(lambda: server.proxy.streams)
                tunnel = await open_tunnel("http-connect", front, endpoint.address)
                await tunnel.write(b"x" * 1000)
                await until(lambda: endpoint.size == 1000)
            await until(lambda: endpoint.was_clean is not None)
            assert not endpoint.was_clean
            await tunnel.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("mode", ["grpc", "http-connect"])
def test_endpoint_of_a_client_that_is_cut_is_reset_after_what_came(
    mode: str, certificates: Certificates, front: str
) -> None:
    """A gRPC client that leaves its stream open, and one at a plain socket that the server gives up."""

    async def scenario() -> None:
        endpoint = Drain()
        endpoint.may_read.set()
        async with both_ends(certificates, front, mode) as (server, agent), endpoint.listening():
            tunnel = await open_tunnel(mode, front, endpoint.address)
            await tunnel.write(b"x" * 1000)
            await until(lambda: endpoint.size == 1000)
            if mode == "grpc":
                tunnel.abort()
            else:
                for each in list(server.proxy.frontends.values()):
                    each.disconnect()
            await until(lambda: endpoint.was_clean is not None)
            assert (endpoint.size, endpoint.was_clean) == (1000, False)
            await until(lambda: not agent.pool.open_endpoints and not server.proxy.frontends)

    asyncio.run(scenario())


def test_destination_of_a_node_whose_client_is_reset_is_reset(certificates: Certificates, front: str) -> None:
    async def scenario() -> None:
        endpoint = Drain()
        endpoint.may_read.set()
        async with endpoint.listening(), node_and_server(certificates, front, endpoint.address) as (_, _, port):
            _, writer = await asyncio.open_connection(LOCAL, port)
            writer.write(b"x" * 1000)
            await until(lambda: endpoint.size == 1000)
            sockets.reset(writer.transport)
            await until(lambda: endpoint.was_clean is not None)
            assert (endpoint.size, endpoint.was_clean) == (1000, False)

    asyncio.run(scenario())


@pytest.mark.parametrize("mode", ["grpc", "http-connect"])
def test_reader_of_a_stock_agent_that_pauses_before_a_quick_source_gets_everything(
    mode: str, certificates: Certificates, front: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an API server does that gets no processor for a while."""
    monkeypatch.setattr(pool, "offer", lambda _targets: ())
    size = 32 * 1024 * 1024  # far more than the buffers of all sockets and what may spill

    async def scenario() -> None:
        policy = StallPolicy(buffer_bytes=256 * 1024)
        async with both_ends(certificates, front, mode, stall_policy=policy) as (server, _), source(size) as address:
            client = await open_tunnel(mode, front, address)
            await asyncio.sleep(1)
            got = 0
            while data := await client.read():
                got += len(data)
            assert (got, server.proxy.stalled) == (size, 0)
            await client.close()

    asyncio.run(scenario())


def test_reader_whose_credit_comes_in_large_steps_gets_everything_through_a_stock_agent(
    certificates: Certificates, front: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Go peer confirms a quarter of its window at a time: it may read for long before that is seen."""
    monkeypatch.setattr(pool, "offer", lambda _targets: ())
    size, window = 24 * 1024 * 1024, 4 * 1024 * 1024

    async def scenario() -> None:
        policy = StallPolicy(buffer_bytes=256 * 1024, stall_s=0.5)
        config = RpcConfig(http2=Http2Config(stream_window=window))
        async with both_ends(certificates, front, "grpc", stall_policy=policy) as (server, _), source(size) as address:
            client = await GrpcTunnel.open(front, address, config=config)
            got = 0
            while data := await client.read():
                got += len(data)
                if window < got < 2 * window:
                    await asyncio.sleep(len(data) / 2_000_000)  # a step in half a second, and longer on a busy machine
            assert (got, server.proxy.stalled) == (size, 0)
            await client.close()

    asyncio.run(scenario())
