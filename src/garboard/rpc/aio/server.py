"""The asyncio server: listens, and runs a handler for every call."""

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

from garboard.errors import GarboardError, NotReady
from garboard.rpc.aio.call import AioServerCall
from garboard.rpc.aio.link import AioLink
from garboard.rpc.calls import ServerCall
from garboard.rpc.endpoint import RpcConfig, ServerEndpoint
from garboard.rpc.errors import RpcFailed
from garboard.rpc.keepalive import KeepaliveConfig
from garboard.rpc.status import Status, StatusCode
from garboard.rpc.targets import Target, TcpTarget

Handler = Callable[[AioServerCall], Awaitable[None]]

log = logging.getLogger("garboard.rpc")


class AioServer:
    """A listening server; make it with `serve`."""

    def __init__(
        self,
        handlers: Mapping[str, Handler],
        tasks: asyncio.TaskGroup,
        config: RpcConfig | None,
        keepalive: KeepaliveConfig | None,
    ) -> None:
        self._handlers = handlers
        self._tasks = tasks
        self._config = config
        self._keepalive = keepalive
        self._running: set[asyncio.Task[None]] = set()
        self.links: set[AioLink] = set()
        self.port = 0

    def accept(self) -> AioLink:
        """A protocol for one more connection; it counts once TLS, if there is any, has been agreed on."""
        return AioLink(
            ServerEndpoint(config=self._config),
            on_call=self._on_call,
            on_change=self._on_change,
            keepalive=self._keepalive,
        )

    async def drain(self, timeout_s: float) -> int:
        """Take no new calls and wait for the open ones; how many had to be cut is returned."""
        for link in self.links:
            link.endpoint.http.shut_down()
            link.poke()
        if self._running:
            await asyncio.wait(self._running, timeout=timeout_s)
        left = len(self._running)
        await self.stop()
        return left

    async def stop(self) -> None:
        """End every call and connection; the callers are told."""
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(self._running)
        for link in tuple(self.links):
            link.close()

    def _on_change(self, link: AioLink) -> None:
        if link.is_lost:
            self.links.discard(link)
        else:
            self.links.add(link)

    def _on_call(self, link: AioLink, call: ServerCall) -> None:
        handler = self._handlers.get(call.method)
        if handler is None:
            call.finish(Status(StatusCode.UNIMPLEMENTED, f"unknown method {call.method}"))
            return
        served = AioServerCall(link, call, call.timeout_s)
        served.task = task = self._tasks.create_task(_run(handler, served))
        self._running.add(task)
        task.add_done_callback(self._running.discard)


async def _run(handler: Handler, call: AioServerCall) -> None:
    """Run the handler to its end and turn how it ended into a status."""
    status = Status(StatusCode.OK)
    try:
        await handler(call)
    except RpcFailed as failed:
        status = failed.status
    except GarboardError as failed:
        status = Status(StatusCode.UNKNOWN, failed.message)
    except asyncio.CancelledError:
        status = Status(StatusCode.UNAVAILABLE, "the server is stopping")
    except Exception:  # a handler's mistake ends its own call: the server goes on with the others
        log.exception("rpc.handler.crashed method=%s", call.method)
        status = Status(StatusCode.INTERNAL, "the server failed; its log tells more")
    if call.status is None:
        call.finish(status)


@contextlib.asynccontextmanager
async def serve(
    target: Target,
    handlers: Mapping[str, Handler],
    *,
    config: RpcConfig | None = None,
    keepalive: KeepaliveConfig | None = None,
) -> AsyncIterator[AioServer]:
    """Serve while the context is open; leaving it ends every call. Port 0 takes any free one: see `port`.

    An address that cannot be had raises `NotReady`.
    """
    tasks = asyncio.TaskGroup()
    server = AioServer(handlers, tasks, config, keepalive)
    listener = await _listen(target, server.accept)
    if isinstance(target, TcpTarget):
        server.port = listener.sockets[0].getsockname()[1]
    failure: Exception | None = None
    async with tasks:
        try:
            yield server
        except Exception as error:  # noqa: BLE001  # raised below, where the group does not wrap it
            failure = error
        finally:
            listener.close()
            await server.stop()
    if failure is not None:
        raise failure


async def _listen(target: Target, accept: Callable[[], AioLink]) -> asyncio.Server:
    loop = asyncio.get_running_loop()
    try:
        if isinstance(target, TcpTarget):
            return await loop.create_server(accept, target.host, target.port, ssl=target.tls)
        return await loop.create_unix_server(accept, target.path)
    except OSError as error:
        raise NotReady(
            f"cannot listen on {target}: {os.strerror(error.errno) if error.errno else error}",
            hint="see who has the address (`ss -lntp`, `ss -lxp`), or choose another",
            error_class="cannot-listen",
        ) from error
