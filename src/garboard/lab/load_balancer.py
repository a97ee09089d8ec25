"""The control-plane endpoint: a TCP load balancer that hands each connection to an API server that is ready.

A connection to an API server that stops being ready is closed at once; otherwise the client would wait for a dead
machine until TCP gives up, a quarter of an hour later.
"""

import asyncio
import contextlib
import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field

from garboard.net.tls import new_client_context

CHECK_EVERY_S = 1.0
CHECK_TIMEOUT_S = 2.0
CONNECT_TIMEOUT_S = 2.0
# Two failures in a row: a single slow answer of a loaded machine should not cut every connection.
FAILURES_TO_BE_DOWN = 2


@dataclass(slots=True, eq=False)
class ApiServerBackend:
    """An API server as the load balancer sees it."""

    address: str
    port: int
    is_ready: bool = False
    failures: int = 0
    connections: set["Half"] = field(default_factory=set)

    def note(self, answered: bool) -> None:
        """Take the outcome of a check into account; cut the connections of a backend that has gone down."""
        self.failures = 0 if answered else self.failures + 1
        if answered:
            self.is_ready = True
        elif self.failures >= FAILURES_TO_BE_DOWN:
            self.take_down()

    def take_down(self) -> None:
        self.is_ready = False
        for half in tuple(self.connections):
            half.close()


def candidates(backends: Iterable[ApiServerBackend], number: int) -> list[ApiServerBackend]:
    """Order the backends for a new connection: the ready ones round-robin, then the others: a check may lag behind."""
    known = list(backends)
    ready = [each for each in known if each.is_ready]
    start = number % len(ready) if ready else 0
    return [*ready[start:], *ready[:start], *(each for each in known if not each.is_ready)]


class Half(asyncio.Protocol):
    """One side of a balanced connection: what it receives goes to its peer, at the pace of the peer."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.peer: Half | None = None
        self.backend: ApiServerBackend | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        if self.peer and self.peer.transport:
            self.peer.transport.write(data)

    def eof_received(self) -> bool:
        if self.peer and self.peer.transport and self.peer.transport.can_write_eof():
            with contextlib.suppress(OSError):
                self.peer.transport.write_eof()
        return True

    def pause_writing(self) -> None:
        if self.peer and self.peer.transport:
            self.peer.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.peer and self.peer.transport:
            self.peer.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.backend:
            self.backend.connections.discard(self)
        if self.peer:
            self.peer.close()

    def close(self) -> None:
        if self.transport:
            self.transport.close()


class ClientHalf(Half):
    """The client's side: it waits for a backend before it reads."""

    def __init__(self, balancer: "LoadBalancer") -> None:
        super().__init__()
        self._balancer = balancer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert self.transport is not None
        self.transport.pause_reading()
        self._balancer.connect(self)


class LoadBalancer:
    """The endpoint: `backends` may be changed at any time, `check_forever` keeps their state up to date."""

    def __init__(self) -> None:
        self.backends: dict[str, ApiServerBackend] = {}
        self._numbers = itertools.count()
        self._tasks: set[asyncio.Task[None]] = set()
        # The check asks only whether the API server is ready; its certificate is verified by the client.
        self._tls = new_client_context(is_unverified=True)

    def accept(self) -> ClientHalf:
        """Make the protocol of a new connection; to be given to `create_server`."""
        return ClientHalf(self)

    def connect(self, client: ClientHalf) -> None:
        task = asyncio.get_running_loop().create_task(self._connect(client))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connect(self, client: ClientHalf) -> None:
        loop = asyncio.get_running_loop()
        for backend in candidates(self.backends.values(), next(self._numbers)):
            try:
                async with asyncio.timeout(CONNECT_TIMEOUT_S):
                    _, server = await loop.create_connection(Half, backend.address, backend.port)
            except (OSError, TimeoutError):
                continue
            server.peer, client.peer, server.backend = client, server, backend
            backend.connections.add(server)
            if client.transport is None or client.transport.is_closing():
                server.close()
            else:
                client.transport.resume_reading()
            return
        client.close()

    async def check_forever(self) -> None:
        """Ask every backend each second whether it is ready."""
        while True:
            await asyncio.gather(*(self._check(each) for each in tuple(self.backends.values())))
            await asyncio.sleep(CHECK_EVERY_S)

    async def _check(self, backend: ApiServerBackend) -> None:
        try:
            async with asyncio.timeout(CHECK_TIMEOUT_S):
                backend.note(await self._is_ready(backend))
        except (OSError, TimeoutError, EOFError):
            backend.note(False)

    async def _is_ready(self, backend: ApiServerBackend) -> bool:
        reader, writer = await asyncio.open_connection(backend.address, backend.port, ssl=self._tls)
        try:
            writer.write(b"GET /readyz HTTP/1.1\r\nHost: endpoint\r\nConnection: close\r\n\r\n")
            return b" 200 " in await reader.readline()
        finally:
            writer.close()
