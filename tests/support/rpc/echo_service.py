"""The same small service on our server and on grpcio's, so that one test asks both."""

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc

from garboard.rpc import RpcFailed, Status, StatusCode
from garboard.rpc.aio import AioServerCall, Handler

ECHO, CHAT, FAIL, SLOW = "/Test/Echo", "/Test/Chat", "/Test/Fail", "/Test/Slow"
PARTS = "/Test/Parts"


async def echo(call: AioServerCall) -> None:
    """Unary: the request with a mark, and the metadata `k-bin` sent back both ways."""
    request = await call.receive()
    given = tuple(pair for pair in call.metadata if pair[0] == "k-bin")
    call.start(given)
    await call.send(b"echo:", request or b"")
    call.finish(Status(StatusCode.OK, trailers=given))


async def chat(call: AioServerCall) -> None:
    """Every message comes back."""
    async for message in call:
        await call.send(message)


async def flood(call: AioServerCall) -> None:
    """As many messages of a size as the request says: `COUNT SIZE`."""
    count, size = map(int, (await call.receive() or b"0 0").split())
    for _ in range(count):
        await call.send(bytes(size))


async def fail(call: AioServerCall) -> None:
    await call.receive()
    raise RpcFailed(call.method, Status(StatusCode.FAILED_PRECONDITION, "not now: é %"))


async def slow(call: AioServerCall) -> None:
    await asyncio.sleep(60)


HANDLERS: dict[str, Handler] = {ECHO: echo, CHAT: chat, "/Test/Flood": flood, FAIL: fail, SLOW: slow}


class _GrpcioService(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpcio has no types
    def service(self, details: Any) -> Any:
        return {
            ECHO: grpc.unary_unary_rpc_method_handler(self._echo),
            CHAT: grpc.stream_stream_rpc_method_handler(self._chat),
            FAIL: grpc.unary_unary_rpc_method_handler(self._fail),
            SLOW: grpc.unary_unary_rpc_method_handler(self._slow),
            PARTS: grpc.unary_stream_rpc_method_handler(self._parts),
        }.get(details.method)

    @staticmethod
    def _echo(request: bytes, context: Any) -> bytes:
        given = tuple(pair for pair in context.invocation_metadata() if pair[0] == "k-bin")
        context.send_initial_metadata(given)
        context.set_trailing_metadata(given)
        return b"echo:" + request

    @staticmethod
    def _chat(requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
        yield from requests

    @staticmethod
    def _fail(request: bytes, context: Any) -> bytes:
        context.abort(grpc.StatusCode.FAILED_PRECONDITION, "not now: é %")
        return b""

    @staticmethod
    def _slow(request: bytes, context: Any) -> bytes:
        time.sleep(1)
        return b""

    @staticmethod
    def _parts(request: bytes, context: Any) -> Iterator[bytes]:
        """As many messages of a size, and what comes then: `COUNT SIZE ok|fail|hang`."""
        count, size, then = request.split()
        for number in range(int(count)):
            yield bytes([number % 256]) * int(size)
        if then == b"fail":
            context.abort(grpc.StatusCode.ABORTED, "cut short")
        if then == b"hang":
            time.sleep(1)


@contextmanager
def grpcio_server(address: str, credentials: Any = None) -> Iterator[int]:
    """grpcio's server with the service at `address`; its port, when it has one."""
    server = grpc.server(ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((_GrpcioService(),))
    port = server.add_secure_port(address, credentials) if credentials else server.add_insecure_port(address)
    server.start()
    try:
        yield port
    finally:
        server.stop(0).wait()
