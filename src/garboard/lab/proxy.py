"""The control-plane endpoint: a TCP proxy that leads each connection to an API server that is ready.

A connection to an API server that stops being ready is closed at once, for its peer would otherwise wait for a dead
machine until TCP gives up, a quarter of an hour later.
"""

import asyncio
import contextlib
import itertools
import ssl
from collections.abc import Iterable
from dataclasses import dataclass, field

CHECK_EVERY_S = 1.0
CHECK_TIMEOUT_S = 2.0
CONNECT_TIMEOUT_S = 2.0
# Two failures in a row: a single slow answer of a loaded machine should not cut every connection.
FAILURES_TO_BE_DOWN = 2


@dataclass(slots=True, eq=False)
class Backend:
    """An API server as the proxy sees it."""

    address: str
    port: int
    is_ready: bool = False
    failures: int = 0
    connections: set["Half"] = field(default_factory=set)

    def note(self, answered: bool) -> None:
        """Take the outcome of a check into account; cut the connections of a back end that has gone down."""
        self.failures = 0 if answered else self.failures + 1
        if answered:
            self.is_ready = True
        elif self.failures >= FAILURES_TO_BE_DOWN:
            self.take_down()

    def take_down(self) -> None:
        self.is_ready = False
        for half in tuple(self.connections):
            half.close()


def candidates(backends: Iterable[Backend], turn: int) -> list[Backend]:
    """Order the back ends for a new connection: the ready ones in turn, then the others, for a check may lag behind."""
    everyone = list(backends)
    ready = [each for each in everyone if each.is_ready]
    start = turn % len(ready) if ready else 0
    return [*ready[start:], *ready[:start], *(each for each in everyone if not each.is_ready)]


class Half(asyncio.Protocol):
    """One side of a proxied connection: what it receives goes to its peer, at the pace of the peer."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.peer: Half | None = None
        self.backend: Backend | None = None

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


class Front(Half):
    """The client's side: it waits for a back end before it reads."""

    def __init__(self, proxy: "Proxy") -> None:
        super().__init__()
        self.proxy = proxy

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert self.transport is not None
        self.transport.pause_reading()
        self.proxy.connect(self)


class Proxy:
    """The endpoint: `backends` may be changed at any time, `check_forever` keeps their state."""

    def __init__(self) -> None:
        self.backends: dict[str, Backend] = {}
        self._turns = itertools.count()
        self._tasks: set[asyncio.Task[None]] = set()
        self._tls = ssl.create_default_context()
        # Only whether it is ready is asked here; who it is, is between the client and the API server.
        self._tls.check_hostname = False
        self._tls.verify_mode = ssl.CERT_NONE

    def front(self) -> Front:
        return Front(self)

    def connect(self, front: Front) -> None:
        task = asyncio.get_running_loop().create_task(self._connect(front))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connect(self, front: Front) -> None:
        loop = asyncio.get_running_loop()
        for backend in candidates(self.backends.values(), next(self._turns)):
            try:
                async with asyncio.timeout(CONNECT_TIMEOUT_S):
                    _, back = await loop.create_connection(Half, backend.address, backend.port)
            except (OSError, TimeoutError):
                continue
            back.peer, front.peer, back.backend = front, back, backend
            backend.connections.add(back)
            if front.transport is None or front.transport.is_closing():
                back.close()
            else:
                front.transport.resume_reading()
            return
        front.close()

    async def check_forever(self) -> None:
        """Ask every back end each second whether it is ready."""
        while True:
            await asyncio.gather(*(self._check(each) for each in tuple(self.backends.values())))
            await asyncio.sleep(CHECK_EVERY_S)

    async def _check(self, backend: Backend) -> None:
        try:
            async with asyncio.timeout(CHECK_TIMEOUT_S):
                backend.note(await self._is_ready(backend))
        except (OSError, TimeoutError, EOFError):
            backend.note(False)

    async def _is_ready(self, backend: Backend) -> bool:
        reader, writer = await asyncio.open_connection(backend.address, backend.port, ssl=self._tls)
        try:
            writer.write(b"GET /readyz HTTP/1.1\r\nHost: endpoint\r\nConnection: close\r\n\r\n")
            return b" 200 " in await reader.readline()
        finally:
            writer.close()
