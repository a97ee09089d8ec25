"""What stock peers hear from us, recorded: only packets they know, at the times they expect them.

A relay stands between a stock program and ours and writes down what passes. The stock server or agent is asked for
everything we can do: both front-end modes, bulk data, failed dials, an agent with targets.
"""

import asyncio
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from garboard.lab.binaries import Binaries
from garboard.rpc.frames import DATA, HEADERS, FrameReader
from garboard.rpc.headers import HeaderDecoder
from garboard.rpc.limits import Limits
from garboard.rpc.messages import Deframer
from garboard.tunnel.wire.packets import PacketType, decode_packet, type_of
from tests.support.tunnel.clients import Refused, echo_checked, echo_server, open_tunnel
from tests.support.tunnel.programs import Program, Programs, programs
from tools.harness.certificates import Certificates
from tools.harness.ports import free_ports

pytestmark = pytest.mark.real

KNOWN = frozenset(PacketType) - {PacketType.CREDIT}
STOCK_ANSWER = {":status", "content-type", "serverid", "servercount"}


class Record:
    """One direction of a connection: its packets and headers as the peer reads them."""

    def __init__(self, *, from_client: bool) -> None:
        preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" if from_client else b""
        self._frames = FrameReader(1 << 24, preface=preface)
        self._headers = HeaderDecoder(Limits())
        self._deframer = Deframer()
        self.types: set[PacketType | None] = set()
        self.headers: set[str] = set()

    def feed(self, data: bytes) -> None:
        for frame in self._frames.feed(data):
            if frame.kind == HEADERS:
                self._headers.begin(frame.stream_id, frame.flags, frame.payload)
                self.headers |= {name for name, _ in self._headers.finish()}
            elif frame.kind == DATA:
                for message in self._deframer.feed(frame.payload):
                    packet = decode_packet(message)
                    self.types.add(type_of(packet) if packet is not None else None)


class Relay:
    """Ends TLS on both sides and records what both ends say."""

    def __init__(self, certificates: Certificates) -> None:
        self._keys = certificates
        self.to_server = Record(from_client=True)
        self.to_agent = Record(from_client=False)

    async def serve(self, port: int, server_port: int) -> asyncio.Server:
        keys = self._keys
        outside = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        outside.load_cert_chain(keys.server, keys.server_key)
        inside = ssl.create_default_context(cafile=keys.ca)
        inside.load_cert_chain(keys.client, keys.client_key)
        for context in (outside, inside):
            context.set_alpn_protocols(["h2"])

        async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            there = await asyncio.open_connection("127.0.0.1", server_port, ssl=inside)
            await asyncio.gather(
                _copy(reader, there[1], self.to_server), _copy(there[0], writer, self.to_agent), return_exceptions=True
            )

        return await asyncio.start_server(relay, "127.0.0.1", port, ssl=outside)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, record: Record) -> None:
    try:
        while data := await reader.read(65536):
            record.feed(data)
            writer.write(data)
            await writer.drain()
    finally:
        writer.close()


@pytest.fixture
def started(binaries: Binaries, certificates: Certificates, tmp_path: Path) -> Iterator[Programs]:
    with programs(binaries, certificates, tmp_path) as all_:
        yield all_


async def first_byte(port: int) -> bytes:
    """Return what comes first from a local port; the connection may be refused, reset or closed instead."""
    reader, _ = await asyncio.open_connection("127.0.0.1", port)
    return await reader.readexactly(1)


@pytest.mark.parametrize("mode", ["grpc", "http-connect"])
@pytest.mark.parametrize(("server_is", "agent_is"), [("ours", "stock"), ("stock", "ours"), ("ours", "ours")])
def test_stock_peer_hears_only_what_it_knows(
    started: Programs, certificates: Certificates, server_is: str, agent_is: str, mode: str, front: str
) -> None:
    async def scenario() -> Relay:
        relay = Relay(certificates)
        local, middle, nobody = free_ports(3)
        allowed = ("--allowed-destination=127.0.0.1:9",) if server_is == "ours" else ()
        targets = ("--bind-address=127.0.0.1", f"--target={local}:127.0.0.1:9") if agent_is == "ours" else ()
        server = await asyncio.to_thread(lambda: started.server(server_is, mode, front, extra=allowed))
        listener = await relay.serve(middle, server.port)
        agent = await asyncio.to_thread(
            lambda: started.agent(agent_is, Program(server.process, 0, middle), extra=targets)
        )
        await asyncio.to_thread(server.wait_for, "/readyz")
        async with echo_server() as address, asyncio.timeout(120):
            tunnel = await open_tunnel(mode, front, address)
            await echo_checked(tunnel, 20_000_000)  # far more than any window
            await tunnel.close()
            with pytest.raises(Refused):
                await open_tunnel(mode, front, f"127.0.0.1:{nobody}")
            if targets:
                with pytest.raises((OSError, asyncio.IncompleteReadError)):
                    await first_byte(local)
            agent.terminate()  # DRAIN
            await asyncio.sleep(0.5)
        listener.close()
        return relay

    relay = asyncio.run(scenario())
    assert {PacketType.DIAL_RSP, PacketType.DATA} <= relay.to_server.types
    assert {PacketType.DIAL_REQ, PacketType.DATA} <= relay.to_agent.types
    if "stock" in (server_is, agent_is):
        assert relay.to_server.types <= KNOWN - {PacketType.DIAL_REQ, PacketType.CLOSE_REQ}
        assert relay.to_agent.types <= {
            PacketType.DIAL_REQ, PacketType.DATA, PacketType.CLOSE_REQ, PacketType.DIAL_CLS
        }  # fmt: skip
        assert {name for name in relay.to_agent.headers if not name.startswith("grpc-")} <= STOCK_ANSWER
    else:  # the recorder sees what it should miss above
        assert PacketType.CREDIT in relay.to_server.types & relay.to_agent.types
        assert PacketType.DIAL_REQ in relay.to_server.types
        assert "garboard-tunnel" in relay.to_agent.headers
