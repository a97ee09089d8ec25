"""The connections of the asyncio client: HTTP/2, so that many watches and requests share one.

Another one is opened when the first takes no more streams, says goodbye, or belongs to credentials that have changed
since. Whoever waits for an answer may be cancelled at any time: its stream is reset, the others go on.
"""

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from garboard.errors import ClusterUnreachable, GarboardError
from garboard.kube.access import Access
from garboard.kube.errors import broken, unreachable
from garboard.kube.exchange import ApiAnswer
from garboard.kube.requests import ApiRequest, read_date, read_retry_after
from garboard.net.async_connect import connected_along
from garboard.net.connect import ProxyFailed
from garboard.rpc.aio.link import AioLink
from garboard.rpc.endpoint import RpcConfig
from garboard.rpc.headers import Headers
from garboard.rpc.http_endpoint import HttpEndpoint, HttpExchange
from garboard.rpc.keepalive import KeepaliveConfig

MAX_BYTES: Final = 64 * 1024 * 1024
# As client-go: a server that is silent for so long is asked whether it is there.
KEEPALIVE: Final = KeepaliveConfig(time_s=30.0, timeout_s=15.0)
# Tokens of service accounts are replaced long before they expire; client-go reads them as often.
ACCESS_EVERY_S: Final = 60.0


class PendingAnswer:
    """The answer to one request, from the moment that it was sent; satisfies `AnswerListener`."""

    def __init__(self, connection: "_Connection") -> None:
        self.status = 0
        self._connection = connection
        self._headers: dict[str, str] = {}
        self._chunks: deque[bytes] = deque()
        self._is_over = False
        self._failure: GarboardError | None = None
        self._waiter: asyncio.Future[None] | None = None
        self.exchange: HttpExchange | None = None

    @property
    def date(self) -> str:
        return self._headers.get("date", "")

    @property
    def retry_after_s(self) -> float | None:
        return read_retry_after(self._headers.get("retry-after"), read_date(self.date) or datetime.now(UTC))

    async def begun(self, timeout_s: float) -> None:
        """Wait until the status is known."""
        while not self.status:
            self._raise_failure()
            await self._progress(timeout_s)

    async def chunk(self, timeout_s: float | None) -> bytes:
        """Return the next part of the body, and nothing at its end."""
        while not self._chunks:
            if self._is_over:
                return b""
            self._raise_failure()
            await self._progress(timeout_s)
        data = self._chunks.popleft()
        assert self.exchange is not None
        self.exchange.consume(len(data))
        self._connection.link.poke()
        return data

    async def body(self, timeout_s: float) -> bytes:
        parts, size = [], 0
        while part := await self.chunk(timeout_s):
            parts.append(part)
            size += len(part)
            if size > MAX_BYTES:
                raise GarboardError(
                    f"the API server answers with more than {MAX_BYTES // 1024**2} MiB", hint="ask for less at once"
                )
        return b"".join(parts)

    def cancel(self) -> None:
        if self.exchange is not None:
            while self._chunks:
                self.exchange.consume(len(self._chunks.popleft()))
            self.exchange.cancel()
            self._connection.link.poke()

    # AnswerListener

    def answered(self, headers: Headers) -> None:
        self._headers = dict(headers)
        status = self._headers.get(":status", "")
        self.status = int(status) if status.isdecimal() else 0
        self._wake()

    def received(self, data: bytes) -> None:
        self._chunks.append(data)
        self._wake()

    def finished(self) -> None:
        self._is_over = True
        if not self.status:
            self._failure = broken(self._connection.server, ConnectionError("an answer without a status"))
        self._wake()

    def failed(self, reason: str, *, is_unprocessed: bool) -> None:
        self._failure = broken(
            self._connection.server,
            ConnectionResetError(reason),
            was_idle=self._connection.has_answered,
            is_untouched=is_unprocessed,
        )
        self._wake()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    async def _progress(self, timeout_s: float | None) -> None:
        """Wait until something arrives; it is no sign of life of this answer that the connection lives."""
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(timeout_s):
                await self._waiter
        except TimeoutError as error:
            raise broken(self._connection.server, error) from error
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self.status:
            self._connection.has_answered = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class _Connection:
    """One HTTP/2 connection, and the access that it was opened for."""

    def __init__(self, access: Access) -> None:
        authority = f"[{access.host}]:{access.port}" if ":" in access.host else f"{access.host}:{access.port}"
        self.server = access.server
        self.has_answered = False
        self._access = access
        self._endpoint = HttpEndpoint(authority=authority, config=RpcConfig())
        self.link = AioLink(self._endpoint, keepalive=KEEPALIVE)

    async def open(self, environment: Mapping[str, str], timeout_s: float) -> None:
        """Connect, and wait until the server has begun to speak HTTP/2."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._dial(environment, timeout_s)
                await asyncio.wait((self.link.settled, self.link.lost), return_when=asyncio.FIRST_COMPLETED)
        except OSError as error:
            self.link.abort("not connected")
            raise _not_opened(self.server, error) from error
        except BaseException:
            self.link.abort("not wanted any more")
            raise
        if self.link.is_lost:
            raise _refused(self.server, self.link.lost.result())

    async def _dial(self, environment: Mapping[str, str], timeout_s: float) -> None:
        access, loop = self._access, asyncio.get_running_loop()
        route, tls = access.route(environment), access.tls()
        tls.set_alpn_protocols(["h2"])
        if route.proxy is None and route.entrance is None:
            await loop.create_connection(lambda: self.link, access.host, access.port, ssl=tls)
            return
        connection = await connected_along(route, timeout_s)
        await loop.create_connection(lambda: self.link, sock=connection, ssl=tls, server_hostname=access.host)

    def is_for(self, access: Access) -> bool:
        return _without_token(self._access) == _without_token(access)

    @property
    def can_ask(self) -> bool:
        return not self.link.is_lost and self._endpoint.http.can_open_stream

    @property
    def is_unused(self) -> bool:
        return not self._endpoint.exchanges

    def ask(self, request: ApiRequest, access: Access) -> PendingAnswer:
        answer = PendingAnswer(self)
        headers = tuple((name.lower(), value) for name, value in request.headers(access.token).items())
        target = access.prefix + request.target
        answer.exchange = self._endpoint.request(request.method, target, headers, request.body, answer)
        self.link.poke()
        return answer


class AioConnections:
    """Sends requests, each once, over as few connections as there can be."""

    def __init__(
        self,
        find_access: Callable[[], Access],
        timeout_s: float,
        environment: Mapping[str, str],
        now_s: Callable[[], float],
    ) -> None:
        self.opened = 0
        self._find_access = find_access
        self._timeout_s = timeout_s
        self._environment = environment
        self._now_s = now_s
        self._access: Access | None = None
        self._read_at = 0.0
        self._connections: list[_Connection] = []
        self._dialling = asyncio.Lock()

    async def exchange(self, request: ApiRequest) -> ApiAnswer:
        """Send a request, once, and return the answer, whatever its status."""
        async with self.answering(request) as answer:
            data = await answer.body(self._timeout_s)
            return ApiAnswer(answer.status, data, answer.date, answer.retry_after_s)

    @asynccontextmanager
    async def answering(self, request: ApiRequest) -> AsyncIterator[PendingAnswer]:
        """Send a request, once, and give its answer as soon as it begins."""
        access = self.access()
        connection = await self._connected(access)
        answer = connection.ask(request, access)
        try:
            await answer.begun(self._timeout_s)
            yield answer
        finally:
            answer.cancel()
            self._sweep()

    async def close(self) -> None:
        connections, self._connections = self._connections, []
        for each in connections:
            each.link.close()
        for each in connections:
            if each.link.transport is not None:
                await each.link.lost

    def access(self) -> Access:
        """Return how the server is reached now; it is read anew now and then, since tokens and certificates change.

        What cannot be read at such a moment, for it is being replaced, is read the next time.
        """
        now_s = self._now_s()
        if self._access is None:
            self._access, self._read_at = self._find_access(), now_s
        elif now_s - self._read_at >= ACCESS_EVERY_S:
            self._read_at = now_s
            with suppress(GarboardError):
                self._access = self._find_access()
        return self._access

    async def _connected(self, access: Access) -> _Connection:
        """Return a connection that takes a request; of those who find none, one opens it and the others wait."""
        while True:
            found = self._usable(access)
            if found is not None:
                return found
            async with self._dialling:
                if self._usable(access) is not None:
                    continue
                connection = _Connection(access)
                await connection.open(self._environment, self._timeout_s)
                self.opened += 1
                self._connections.append(connection)

    def _usable(self, access: Access) -> _Connection | None:
        return next((each for each in self._connections if each.can_ask and each.is_for(access)), None)

    def _sweep(self) -> None:
        """Close what is of no use any more."""
        kept = []
        for each in self._connections:
            is_wanted = each.can_ask and self._access is not None and each.is_for(self._access)
            if each.link.is_lost:
                continue
            if not is_wanted and each.is_unused:
                each.link.close()
                continue
            kept.append(each)
        self._connections = kept


def _without_token(access: Access) -> Access:
    return replace(access, token="")


def _not_opened(server: str, error: OSError) -> ClusterUnreachable:
    """A load balancer without a server behind it accepts, and ends the connection at once: that may pass."""
    is_hung_up = isinstance(error, ConnectionError | ssl.SSLEOFError) and not isinstance(error, ConnectionRefusedError)
    if is_hung_up and not isinstance(error, ProxyFailed):
        return broken(server, error, is_untouched=True)
    return unreachable(server, error)


def _refused(server: str, reason: str) -> ClusterUnreachable:
    if "h2" in reason:
        return ClusterUnreachable(
            f"the API server at {server} does not speak HTTP/2",
            hint="watching needs it: look for a proxy that ends TLS on the way, or for GODEBUG=http2server=0",
        )
    return broken(server, ConnectionResetError(reason), is_untouched=True)
