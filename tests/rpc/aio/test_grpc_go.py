"""The asyncio driver with grpc-go at the other end, both ways: the library of every Kubernetes program."""

import asyncio
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from garboard.rpc import RpcFailed, StatusCode, TcpTarget, UnixTarget
from garboard.rpc.aio import AioClient, serve
from tests.support.rpc.echo_service import CHAT, ECHO, FAIL, HANDLERS, SLOW
from tools.harness import oracles

pytestmark = pytest.mark.real

# Messages and their size: many small ones, and few that are larger than grpc-go's first window.
LOADS = pytest.mark.parametrize(("count", "size"), [(3000, 4096), (200, 300_000)], ids=["small", "large"])


@pytest.fixture(scope="module")
def grpc_go() -> str:
    return str(oracles.grpc_go().built())


@LOADS
def test_grpc_go_client_finds_our_server_good(grpc_go: str, count: int, size: int) -> None:
    async def scenario() -> str:
        async with serve(TcpTarget("127.0.0.1", 0), HANDLERS) as server:
            return await ask(grpc_go, f"127.0.0.1:{server.port}", count, size)

    assert asyncio.run(scenario()) == "all good\n"


def test_grpc_go_client_finds_our_unix_server_good(grpc_go: str, socket_path: str) -> None:
    async def scenario() -> str:
        async with serve(UnixTarget(socket_path), HANDLERS):
            return await ask(grpc_go, f"unix:{socket_path}", 1000, 4096)

    assert asyncio.run(scenario()) == "all good\n"


async def ask(grpc_go: str, address: str, count: int, size: int) -> str:
    process = await asyncio.create_subprocess_exec(
        grpc_go, "call", address, str(count), str(size), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    said, _ = await process.communicate()
    return said.decode()


@contextmanager
def go_server(grpc_go: str) -> Iterator[int]:
    with subprocess.Popen([grpc_go, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield int(process.stdout.readline())
        process.stdin.close()


@LOADS
def test_our_client_finds_a_grpc_go_server_good(grpc_go: str, count: int, size: int) -> None:
    async def scenario(port: int) -> None:
        async with await AioClient.connect(TcpTarget("127.0.0.1", port)) as client:
            assert await client.unary(ECHO, b"hi") == b"echo:hi"
            call = await client.call(CHAT)

            async def send() -> None:
                for number in range(count):
                    await call.send(bytes([number % 256]) * size)
                call.end_sending()

            sending = asyncio.ensure_future(send())
            heard = [(message[0], len(message)) async for message in call]
            await sending
            assert heard == [(number % 256, size) for number in range(count)]
            for method, code in ((FAIL, StatusCode.FAILED_PRECONDITION), ("/Test/No", StatusCode.UNIMPLEMENTED)):
                with pytest.raises(RpcFailed) as caught:
                    await client.unary(method, b"")
                assert caught.value.code is code
            with pytest.raises(RpcFailed) as caught:
                await client.unary(SLOW, b"", timeout_s=0.2)
            assert caught.value.code is StatusCode.DEADLINE_EXCEEDED

    with go_server(grpc_go) as port:
        asyncio.run(scenario(port))
