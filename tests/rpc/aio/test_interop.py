"""The asyncio driver with grpcio at the other end, both ways, and with itself."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import grpc
import grpc.aio
import pytest

from garboard.rpc import RpcFailed, StatusCode, TcpTarget, UnixTarget, client_tls, server_tls
from garboard.rpc.aio import AioClient, serve
from tests.support.rpc.echo_service import CHAT, ECHO, FAIL, HANDLERS, SLOW, grpcio_server
from tools.harness.certificates import Certificates

SIZES = (0, 1, 16_384, 65_536, 3_000_000)


@asynccontextmanager
async def client_of_grpcio() -> AsyncIterator[AioClient]:
    with grpcio_server("127.0.0.1:0") as port:
        async with await AioClient.connect(TcpTarget("127.0.0.1", port)) as client:
            yield client


@asynccontextmanager
async def client_of_ours() -> AsyncIterator[AioClient]:
    async with (
        serve(TcpTarget("127.0.0.1", 0), HANDLERS) as server,
        await AioClient.connect(TcpTarget("127.0.0.1", server.port)) as client,
    ):
        yield client


Peer = Callable[[], AbstractAsyncContextManager[AioClient]]
either_server = pytest.mark.parametrize("peer", [client_of_grpcio, client_of_ours], ids=["grpcio", "ours"])


@either_server
def test_unary_calls_with_metadata(peer: Peer) -> None:
    async def scenario() -> None:
        async with peer() as client:
            call = await client.call(ECHO, metadata=(("k-bin", b"\x00\xff"),))
            await call.send(b"hi")
            call.end_sending()
            assert [message async for message in call] == [b"echo:hi"]
            assert ("k-bin", b"\x00\xff") in call.metadata
            assert call.status is not None
            assert ("k-bin", b"\x00\xff") in call.status.trailers

    asyncio.run(scenario())


@either_server
def test_streams_of_all_sizes_come_back_in_order(peer: Peer) -> None:
    async def chat(client: AioClient, mark: bytes) -> None:
        call = await client.call(CHAT)
        for size in SIZES:
            await call.send(mark * size)
            assert await call.receive() == mark * size
        call.end_sending()
        assert await call.receive() is None

    async def scenario() -> None:
        async with peer() as client, asyncio.TaskGroup() as tasks:
            for mark in b"abcd":
                tasks.create_task(chat(client, bytes([mark])))

    asyncio.run(scenario())


@either_server
def test_many_messages_at_once_come_back_in_order(peer: Peer) -> None:
    async def scenario() -> None:
        async with peer() as client:
            call = await client.call(CHAT)

            async def send() -> None:
                for number in range(3000):
                    await call.send(number.to_bytes(4, "big"), bytes(number % 500))
                call.end_sending()

            sending = asyncio.ensure_future(send())
            heard = [int.from_bytes(message[:4], "big") async for message in call]
            await sending
            assert heard == list(range(3000))

    asyncio.run(scenario())


@either_server
def test_failures_arrive_as_statuses(peer: Peer) -> None:
    async def scenario() -> None:
        async with peer() as client:
            with pytest.raises(RpcFailed) as caught:
                await client.unary(FAIL, b"")
            assert caught.value.code is StatusCode.FAILED_PRECONDITION
            assert caught.value.status.message == "not now: é %"
            with pytest.raises(RpcFailed) as caught:
                await client.unary("/Test/Unknown", b"")
            assert caught.value.code is StatusCode.UNIMPLEMENTED
            with pytest.raises(RpcFailed) as caught:
                await client.unary(SLOW, b"", timeout_s=0.1)
            assert caught.value.code is StatusCode.DEADLINE_EXCEEDED
            assert await client.unary(ECHO, b"still here") == b"echo:still here"

    asyncio.run(scenario())


async def ask_as_grpcio(channel: Any) -> None:
    """All that grpcio's own client can ask of our server."""
    echo = channel.unary_unary(ECHO)(b"hi", metadata=(("k-bin", b"\x00\xff"),))
    assert await echo == b"echo:hi"
    assert ("k-bin", b"\x00\xff") in tuple(await echo.initial_metadata())
    assert ("k-bin", b"\x00\xff") in tuple(await echo.trailing_metadata())
    chat = channel.stream_stream(CHAT)()
    for size in SIZES:
        await chat.write(b"x" * size)
        assert await chat.read() == b"x" * size
    await chat.done_writing()
    assert await chat.read() is grpc.aio.EOF
    for method, code in ((FAIL, grpc.StatusCode.FAILED_PRECONDITION), ("/Test/No", grpc.StatusCode.UNIMPLEMENTED)):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await channel.unary_unary(method)(b"")
        assert caught.value.code() is code
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await channel.unary_unary(SLOW)(b"", timeout=0.2)
    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED


def test_grpcio_client_finds_our_server_good() -> None:
    async def scenario() -> None:
        async with (
            serve(TcpTarget("127.0.0.1", 0), HANDLERS) as server,
            grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel,
        ):
            await ask_as_grpcio(channel)

    asyncio.run(scenario())


def test_grpcio_client_finds_our_unix_server_good(socket_path: str) -> None:
    async def scenario() -> None:
        async with (
            serve(UnixTarget(socket_path), HANDLERS),
            grpc.aio.insecure_channel(f"unix:{socket_path}") as channel,
        ):
            await ask_as_grpcio(channel)

    asyncio.run(scenario())


def test_grpcio_client_finds_our_tls_server_good(certificates: Certificates) -> None:
    async def scenario() -> None:
        tls = server_tls(certificates.server, certificates.server_key, client_ca_file=certificates.ca)
        credentials = grpc.ssl_channel_credentials(
            certificates.ca.read_bytes(), certificates.client_key.read_bytes(), certificates.client.read_bytes()
        )
        async with (
            serve(TcpTarget("127.0.0.1", 0, tls), HANDLERS) as server,
            grpc.aio.secure_channel(f"localhost:{server.port}", credentials) as channel,
        ):
            await ask_as_grpcio(channel)

    asyncio.run(scenario())


def test_our_client_over_tls_with_grpcio_and_ourselves(certificates: Certificates) -> None:
    tls = client_tls(certificates.ca, certificate=certificates.client, key=certificates.client_key)
    served = server_tls(certificates.server, certificates.server_key, client_ca_file=certificates.ca)
    credentials = grpc.ssl_server_credentials(
        [(certificates.server_key.read_bytes(), certificates.server.read_bytes())],
        certificates.ca.read_bytes(),
        require_client_auth=True,
    )

    async def ask(port: int) -> None:
        async with await AioClient.connect(TcpTarget("127.0.0.1", port, tls)) as client:
            assert await client.unary(ECHO, bytes(1_000_000)) == b"echo:" + bytes(1_000_000)

    async def scenario() -> None:
        with grpcio_server("127.0.0.1:0", credentials) as port:
            await ask(port)
        async with serve(TcpTarget("127.0.0.1", 0, served), HANDLERS) as server:
            await ask(server.port)

    asyncio.run(scenario())
