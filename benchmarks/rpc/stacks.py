"""The two stacks that are measured, each with the same three methods: take messages, send messages, echo."""

import asyncio
import struct
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol

import grpc.aio

from garboard.rpc import TcpTarget
from garboard.rpc.aio import AioClient, AioServerCall, serve

SINK, SOURCE, ECHO = "/Bench/Sink", "/Bench/Source", "/Bench/Echo"
ORDER = struct.Struct(">II")  # size of a message, number of messages


class Client(Protocol):
    """What the measurements need of a stack."""

    async def upload(self, size: int, count: int) -> float:
        """Seconds until the server has confirmed the last of `count` messages."""

    async def download(self, size: int, count: int) -> float:
        """Seconds until the last message has arrived."""

    async def ping_pong(self, size: int, count: int) -> list[float]:
        """Seconds of each round trip, one at a time."""


class OwnClient:
    def __init__(self, client: AioClient) -> None:
        self._client = client

    async def upload(self, size: int, count: int) -> float:
        call, message = await self._client.call(SINK), bytes(size)
        began = time.perf_counter()
        for _ in range(count):
            await call.send(message)
        call.end_sending()
        assert await call.receive() == struct.pack(">Q", size * count)
        return time.perf_counter() - began

    async def download(self, size: int, count: int) -> float:
        call = await self._client.call(SOURCE)
        began = time.perf_counter()
        await call.send(ORDER.pack(size, count))
        call.end_sending()
        received = 0
        async for message in call:
            received += len(message)
        assert received == size * count
        return time.perf_counter() - began

    async def ping_pong(self, size: int, count: int) -> list[float]:
        call, message, times = await self._client.call(ECHO), bytes(size), []
        for _ in range(count):
            began = time.perf_counter()
            await call.send(message)
            await call.receive()
            times.append(time.perf_counter() - began)
        call.end_sending()
        return times


class GrpcioClient:
    def __init__(self, channel: Any) -> None:
        self._channel = channel

    async def upload(self, size: int, count: int) -> float:
        call, message = self._channel.stream_stream(SINK)(), bytes(size)
        began = time.perf_counter()
        for _ in range(count):
            await call.write(message)
        await call.done_writing()
        assert await call.read() == struct.pack(">Q", size * count)
        return time.perf_counter() - began

    async def download(self, size: int, count: int) -> float:
        call = self._channel.stream_stream(SOURCE)()
        began = time.perf_counter()
        await call.write(ORDER.pack(size, count))
        await call.done_writing()
        received = 0
        while (message := await call.read()) is not grpc.aio.EOF:
            received += len(message)
        assert received == size * count
        return time.perf_counter() - began

    async def ping_pong(self, size: int, count: int) -> list[float]:
        call, message, times = self._channel.stream_stream(ECHO)(), bytes(size), []
        for _ in range(count):
            began = time.perf_counter()
            await call.write(message)
            await call.read()
            times.append(time.perf_counter() - began)
        await call.done_writing()
        return times


async def own_sink(call: AioServerCall) -> None:
    received = 0
    async for message in call:
        received += len(message)
    await call.send(struct.pack(">Q", received))


async def own_source(call: AioServerCall) -> None:
    size, count = ORDER.unpack(await call.receive() or b"")
    message = bytes(size)
    for _ in range(count):
        await call.send(message)


async def own_echo(call: AioServerCall) -> None:
    async for message in call:
        await call.send(message)


async def own_server(ready: Callable[[int], None]) -> None:
    handlers = {SINK: own_sink, SOURCE: own_source, ECHO: own_echo}
    async with serve(TcpTarget("127.0.0.1", 0), handlers) as server:
        ready(server.port)
        await asyncio.Event().wait()


async def _grpcio_sink(requests: AsyncIterator[bytes], _context: object) -> AsyncIterator[bytes]:
    received = 0
    async for message in requests:
        received += len(message)
    yield struct.pack(">Q", received)


async def _grpcio_source(requests: AsyncIterator[bytes], _context: object) -> AsyncIterator[bytes]:
    async for order in requests:
        size, count = ORDER.unpack(order)
        message = bytes(size)
        for _ in range(count):
            yield message


async def _grpcio_echo(requests: AsyncIterator[bytes], _context: object) -> AsyncIterator[bytes]:
    async for message in requests:
        yield message


async def grpcio_server(ready: Callable[[int], None]) -> None:
    server = grpc.aio.server()
    methods = {"Sink": _grpcio_sink, "Source": _grpcio_source, "Echo": _grpcio_echo}
    handlers = {name: grpc.stream_stream_rpc_method_handler(method) for name, method in methods.items()}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("Bench", handlers),))
    ready(server.add_insecure_port("127.0.0.1:0"))
    await server.start()
    await server.wait_for_termination()


@asynccontextmanager
async def own_client(port: int) -> AsyncIterator[Client]:
    async with await AioClient.connect(TcpTarget("127.0.0.1", port)) as client:
        yield OwnClient(client)


@asynccontextmanager
async def grpcio_client(port: int) -> AsyncIterator[Client]:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield GrpcioClient(channel)


SERVERS: dict[str, Callable[[Callable[[int], None]], Awaitable[None]]] = {"own": own_server, "grpc.aio": grpcio_server}
CLIENTS: dict[str, Callable[[int], AbstractAsyncContextManager[Client]]] = {
    "own": own_client,
    "grpc.aio": grpcio_client,
}
