"""Garbage and silence on every port: the ends go on serving, and keep nothing of it."""

import asyncio
import contextlib
import random
import ssl

import pytest

from garboard.rpc import TcpTarget, client_tls, frames
from garboard.rpc.aio import AioClient
from garboard.rpc.headers import HeaderEncoder
from garboard.tunnel.wire import packets
from garboard.tunnel.wire.packets import encode_packet
from tests.support.rpc.peers import REQUEST
from tests.support.tunnel.clients import HttpTunnel, echo_checked, echo_server
from tests.support.tunnel.ends import both_ends, fetch, until
from tools.harness.certificates import Certificates


async def _pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, data: bytes) -> None:
    with contextlib.suppress(OSError, ssl.SSLError):
        writer.write(data)
        await writer.drain()
        async with asyncio.timeout(0.3):
            await reader.read()
    writer.close()


def test_garbage_on_every_port_leaves_nothing_behind(certificates: Certificates, front: str) -> None:
    numbers = random.Random(7)

    async def scenario() -> None:
        async with both_ends(certificates, front, "http-connect") as (server, agent), echo_server() as address:
            tls = ssl.create_default_context(cafile=certificates.ca)
            tls.load_cert_chain(certificates.client, certificates.client_key)
            tls.set_alpn_protocols(["h2"])
            attacks = []
            for _ in range(10):
                data = numbers.randbytes(500)
                attacks += [
                    _pour(*await asyncio.open_unix_connection(front), data),
                    _pour(*await asyncio.open_unix_connection(front), b"CONNECT " + b"x" * 100_000),
                    _pour(*await asyncio.open_connection("127.0.0.1", server.agent_port), data),
                    _pour(*await asyncio.open_connection("127.0.0.1", server.agent_port, ssl=tls), data),
                    _pour(*await asyncio.open_connection("127.0.0.1", server.health_port), data),
                    *[
                        _pour(*await asyncio.open_connection("127.0.0.1", port), data)
                        for port in (server.admin_port, agent.health_port, agent.admin_port)
                    ],
                ]
            with contextlib.suppress(TimeoutError):
                await asyncio.gather(*attacks, return_exceptions=True)
            await until(lambda: not server.proxy.frontends and len(server.agents.links) == 1)
            tunnel = await HttpTunnel.open(front, address)
            await echo_checked(tunnel, 10_000)
            await tunnel.close()
            assert await fetch(server.health_port, "/readyz") == (200, "ok")

    asyncio.run(scenario())


def test_agent_that_sends_no_packets_is_refused_alone(certificates: Certificates, front: str) -> None:
    async def scenario() -> None:
        async with both_ends(certificates, front, "http-connect") as (server, _), echo_server() as address:
            tls = client_tls(certificates.ca, certificate=certificates.client, key=certificates.client_key)
            client = await AioClient.connect(TcpTarget("127.0.0.1", server.agent_port, tls))
            unnamed = await client.call("/AgentService/Connect")
            await until(lambda: unnamed.status is not None)
            call = await client.call("/AgentService/Connect", metadata=(("agentid", "bad"), ("agentidentifiers", "")))
            await until(lambda: len(server.proxy.streams) == 2)
            await call.send(b"\xff\xff\xff")
            await until(lambda: len(server.proxy.streams) == 1 and call.status is not None)
            await client.close()
            tunnel = await HttpTunnel.open(front, address)
            await echo_checked(tunnel, 10_000)
            await tunnel.close()

    asyncio.run(scenario())


def test_peer_that_reads_nothing_of_what_it_is_told_is_cut_off(
    certificates: Certificates, front: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("garboard.tunnel.wire.pipes.MAX_UNREAD_MESSAGES", 20)

    async def scenario() -> None:
        async with both_ends(certificates, front, "http-connect") as (server, _):
            tls = ssl.create_default_context(cafile=certificates.ca)
            tls.load_cert_chain(certificates.client, certificates.client_key)
            tls.set_alpn_protocols(["h2"])
            reader, writer = await asyncio.open_connection("127.0.0.1", server.agent_port, ssl=tls)
            named = (("agentid", "deaf"), ("agentidentifiers", ""))
            request = (*((n, "/AgentService/Connect" if n == ":path" else v) for n, v in REQUEST), *named)
            block = HeaderEncoder().encode(request)
            writer.write(frames.PREFACE + frames.settings({4: 0}))  # no window for anything
            writer.write(frames.header_frames(1, block, end_stream=False, max_frame=16_384))
            await until(lambda: len(server.proxy.streams) == 2)
            deaf = list(server.proxy.streams.values())[1]
            for _ in range(60):
                deaf.send(encode_packet(packets.DialRequest("tcp", "x" * 10_000, 1)))
            await until(lambda: len(server.proxy.streams) == 1)
            with contextlib.suppress(OSError):
                await reader.read()
            writer.close()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "requests",
    [
        pytest.param([b"\x90" * 60], id="fields"),  # accept-encoding, of the static table: a byte for each
        pytest.param([HeaderEncoder().encode([("x", "y" * 30_000)])] * 4, id="bytes"),
    ],
)
def test_headers_are_bounded_more_closely_where_nobody_is_known_yet(
    certificates: Certificates, front: str, requests: list[bytes]
) -> None:
    """What ends a connection to the port for agents is borne from an API server."""

    async def scenario() -> None:
        async with both_ends(certificates, front, "grpc") as (server, _):
            tls = ssl.create_default_context(cafile=certificates.ca)
            tls.load_cert_chain(certificates.client, certificates.client_key)
            tls.set_alpn_protocols(["h2"])
            agents = await asyncio.open_connection("127.0.0.1", server.agent_port, ssl=tls)
            assert frames.GOAWAY in await _answers(*agents, requests)
            assert frames.GOAWAY not in await _answers(*await asyncio.open_unix_connection(front), requests)

    asyncio.run(scenario())


async def _answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, requests: list[bytes]) -> set[int]:
    """The kinds of the frames that come back, up to the answer to a ping or the end."""
    writer.write(frames.PREFACE + frames.settings({}))
    for number, more in enumerate(requests):
        block = HeaderEncoder().encode(REQUEST) + more
        writer.write(frames.header_frames(2 * number + 1, block, end_stream=True, max_frame=16_384))
    writer.write(frames.ping(b"12345678"))
    kinds: set[int] = set()
    parser = frames.FrameReader(1 << 24)
    async with asyncio.timeout(10):
        with contextlib.suppress(OSError):
            while not kinds & {frames.PING, frames.GOAWAY} and (data := await reader.read(65536)):
                kinds |= {frame.kind for frame in parser.feed(data)}
    writer.transport.abort()
    return kinds
