"""The asyncio client: a connection to a peer and the calls on it."""

import asyncio
from types import TracebackType
from typing import Self

from garboard.net.async_connect import connected_along
from garboard.net.connect import Route
from garboard.rpc.aio.call import AioClientCall
from garboard.rpc.aio.link import AioLink
from garboard.rpc.endpoint import ClientEndpoint, RpcConfig
from garboard.rpc.errors import PeerUnreachable, RpcFailed, unreachable
from garboard.rpc.keepalive import KeepaliveConfig
from garboard.rpc.metadata import Metadata
from garboard.rpc.status import Status, StatusCode
from garboard.rpc.targets import Target, TcpTarget, authority_of


class AioClient:
    """One connection; it does not come back by itself when it is lost: that is its owner's decision."""

    def __init__(self, target: Target, endpoint: ClientEndpoint, keepalive: KeepaliveConfig | None) -> None:
        self._target = target
        self._endpoint = endpoint
        self._slot_waiters: list[asyncio.Future[None]] = []
        self.link = AioLink(endpoint, on_change=self._on_change, keepalive=keepalive)

    @classmethod
    async def connect(
        cls,
        target: Target,
        *,
        config: RpcConfig | None = None,
        keepalive: KeepaliveConfig | None = None,
        timeout_s: float = 10.0,
    ) -> Self:
        """A connection whose peer has begun to speak HTTP/2. Raises `PeerUnreachable`."""
        scheme = "https" if isinstance(target, TcpTarget) and target.tls else "http"
        client = cls(target, ClientEndpoint(authority=authority_of(target), scheme=scheme, config=config), keepalive)
        try:
            async with asyncio.timeout(timeout_s):
                await client._dial(timeout_s)
                await asyncio.wait((client.link.settled, client.link.lost), return_when=asyncio.FIRST_COMPLETED)
        except OSError as error:
            client.link.abort("not connected")
            raise unreachable(target, error) from error
        except asyncio.CancelledError:
            client.link.abort("not wanted any more")
            raise
        client._check_alive()
        return client

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def can_call(self) -> bool:
        """Whether the connection lives and takes new calls."""
        return not self.link.is_lost and not self._endpoint.http.is_draining and not self._endpoint.http.is_closed

    async def call(self, method: str, *, metadata: Metadata = (), timeout_s: float | None = None) -> AioClientCall:
        """Begin a call; waits while the peer takes no more at once."""
        while not self._endpoint.http.can_open_stream:
            self._check_alive()
            waiter = self.link.loop.create_future()
            self._slot_waiters.append(waiter)
            await waiter
        call = self._endpoint.start_call(method, metadata=metadata, timeout_s=timeout_s)
        self.link.poke()
        return AioClientCall(self.link, call, timeout_s)

    async def unary(
        self, method: str, request: bytes, *, metadata: Metadata = (), timeout_s: float | None = None
    ) -> bytes:
        """The one answer to one request."""
        call = await self.call(method, metadata=metadata, timeout_s=timeout_s)
        try:
            await call.send(request)
            call.end_sending()
            messages = [message async for message in call]
        except asyncio.CancelledError:
            call.cancel()
            raise
        if len(messages) != 1:
            raise RpcFailed(method, Status(StatusCode.INTERNAL, f"{len(messages)} answers where one was due"))
        return messages[0]

    async def close(self) -> None:
        """Say goodbye, end what is open, and wait until the transport is gone."""
        self.link.close()
        if self.link.transport is not None:
            await self.link.lost

    async def _dial(self, timeout_s: float) -> None:
        target, loop = self._target, self.link.loop
        if not isinstance(target, TcpTarget):
            await loop.create_unix_connection(lambda: self.link, target.path)
            return
        name = (target.server_name or target.host) if target.tls is not None else None
        if target.proxy is None:
            await loop.create_connection(
                lambda: self.link, target.host, target.port, ssl=target.tls, server_hostname=name
            )
        else:
            through = await connected_along(Route(target.host, target.port, target.proxy), timeout_s)
            await loop.create_connection(lambda: self.link, sock=through, ssl=target.tls, server_hostname=name)

    def _on_change(self, _link: AioLink) -> None:
        waiters, self._slot_waiters = self._slot_waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _check_alive(self) -> None:
        if not self.can_call:
            reason = self.link.lost.result() if self.link.is_lost else self.link.farewell or "it is closing"
            raise PeerUnreachable(f"{self._target}: {reason}", hint="connect again", error_class="connection-lost")
