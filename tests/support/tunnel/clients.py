"""Clients of a proxy server's front ends, and an echo server behind an agent."""

import asyncio
import contextlib
import hashlib
import random
import socket
from collections.abc import AsyncIterator, Iterator

from garboard.rpc import RpcConfig, Target, UnixTarget
from garboard.rpc.aio import AioClient, AioClientCall
from garboard.tunnel.wire import packets
from garboard.tunnel.wire.packets import Packet, decode_packet, encode_packet


@contextlib.asynccontextmanager
async def echo_server() -> AsyncIterator[str]:
    """An address that sends back what it gets."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


@contextlib.contextmanager
def silent_destination() -> Iterator[str]:
    """An address whose queue of connections is full: a dial gets no answer at all."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        yield f"127.0.0.1:{listener.getsockname()[1]}"


class Refused(Exception):
    """The dial failed; the text is what the front end said."""


class HttpTunnel:
    """A connection through an HTTP-CONNECT front end."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, socket_path: str, address: str) -> "HttpTunnel":
        reader, writer = await asyncio.open_unix_connection(socket_path)
        return await cls.over(reader, writer, address)

    @classmethod
    async def over(cls, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, address: str) -> "HttpTunnel":
        writer.write(f"CONNECT {address} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200 "):
            text = head.partition(b"\r\n")[0] + b" | " + await reader.read()
            writer.close()
            raise Refused(text.decode())
        return cls(reader, writer)

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    def send_eof(self) -> None:
        """Say that nothing more will be sent."""
        self._writer.write_eof()

    async def read(self) -> bytes:
        """Some bytes; none at the end."""
        try:
            return await self._reader.read(65536)
        except ConnectionError:
            return b""

    async def close(self) -> None:
        self._writer.close()

    def abort(self) -> None:
        """Go without a word."""
        self._writer.transport.abort()


class GrpcTunnel:
    """A connection through a gRPC front end, on an HTTP/2 connection of its own as an API server makes it."""

    def __init__(self, client: AioClient, call: AioClientCall, connect_id: int) -> None:
        self._client = client
        self._call = call
        self.connect_id = connect_id

    @classmethod
    async def open(cls, front: str | Target, address: str, *, config: RpcConfig | None = None) -> "GrpcTunnel":
        target = UnixTarget(front) if isinstance(front, str) else front
        connecting = asyncio.ensure_future(AioClient.connect(target, config=config))
        try:
            client = await asyncio.shield(connecting)
            return await cls._dial(client, address)
        except asyncio.CancelledError:
            (await connecting).link.abort("given up by the test")
            raise

    @classmethod
    async def _dial(cls, client: AioClient, address: str) -> "GrpcTunnel":
        call = await client.call("/ProxyService/Proxy")
        random_id = random.getrandbits(63)
        await call.send(encode_packet(packets.DialRequest("tcp", address, random_id)))
        answer = await _next_packet(call)
        assert isinstance(answer, packets.DialResponse)
        assert answer.random == random_id
        if answer.error:
            await client.close()
            raise Refused(answer.error)
        return cls(client, call, answer.connect_id)

    async def write(self, data: bytes) -> None:
        for start in range(0, len(data), 16384):
            await self.say(packets.Data(self.connect_id, "", data[start : start + 16384]))

    async def say(self, packet: Packet) -> None:
        await self._call.send(encode_packet(packet))

    async def read(self) -> bytes:
        packet = await _next_packet(self._call)
        return packet.data if isinstance(packet, packets.Data) else b""

    async def close(self) -> None:
        await self._client.close()

    def abort(self) -> None:
        """Go without a word."""
        self._client.link.abort("aborted by the test")


async def _next_packet(call: AioClientCall) -> Packet | None:
    message = await call.receive()
    return decode_packet(message) if message is not None else None


Tunnelled = HttpTunnel | GrpcTunnel


async def echo_checked(tunnel: Tunnelled, size: int, seed: int = 0) -> None:
    """Send random bytes through the echo server and compare what comes back by checksum."""
    data = random.Random(seed).randbytes(size)
    sending = asyncio.create_task(tunnel.write(data))
    seen, received = hashlib.sha256(), 0
    while received < size:
        chunk = await tunnel.read()
        assert chunk, f"the connection ended after {received} of {size} bytes"
        seen.update(chunk)
        received += len(chunk)
    await sending
    assert seen.digest() == hashlib.sha256(data).digest()


async def open_tunnel(mode: str, front: str, address: str) -> Tunnelled:
    return await (HttpTunnel.open(front, address) if mode == "http-connect" else GrpcTunnel.open(front, address))
