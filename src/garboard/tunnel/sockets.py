"""A TCP or unix connection at the outer end of a tunnel: a client of ours, or an endpoint."""

import asyncio
import contextlib
import socket
from typing import Final, Protocol, cast

from garboard.tunnel.flow import Chunk, Outflow, Source, StallWatch

READ_AHEAD_BYTES: Final = 64 * 1024
WRITE_AHEAD_BYTES: Final = 256 * 1024  # more than one payload, or every one of them would fill the socket
FLUSH_TIMEOUT_S: Final = 10.0
# As many as the kernel lets wait (net.core.somaxconn): a unix socket with fewer turns a burst of clients away.
BACKLOG: Final = 4096


# As Go has them: a peer that is gone without a word is noticed after two and a half minutes.
_KEEPALIVE: Final = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 15),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 15),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 9),
)
KEEPALIVE_EVERY_S: Final = 10.0


class Settable(Protocol):
    """A socket of any event loop."""

    @property
    def family(self) -> int: ...

    def setsockopt(self, level: int, name: int, value: int, /) -> None: ...


def keep_alive(peer: Settable) -> None:
    """Have the kernel ask a silent TCP peer whether it is there; what a listening socket accepts inherits it."""
    if peer.family in (socket.AF_INET, socket.AF_INET6):
        for option in _KEEPALIVE:
            peer.setsockopt(*option)


class SocketEnd(asyncio.Protocol):
    """Reads no further ahead than the tunnel takes, and buffers no more than it may for a socket that is slow."""

    shares_credit = False
    # How every socket begins; as defaults of the class they cost a connection nothing until they change.
    transport: asyncio.Transport | None = None
    bytes_read = 0
    bytes_written = 0
    writes = 0
    _is_kept_alive = False
    _under_way = 0
    _is_reading = True
    _is_full = False
    _is_closing = False
    _flush_timer: asyncio.TimerHandle | None = None

    def __init__(self, watch: StallWatch) -> None:
        self.outflow = Outflow(self, watch)

    # What the tunnel's side uses.

    @property
    def has_room(self) -> bool:
        return self.transport is not None and not self._is_full

    @property
    def backlog(self) -> int:
        return self.transport.get_write_buffer_size() if self.transport is not None else 0

    @property
    def is_held_back(self) -> bool:
        """Whether it is not read, since the tunnel takes no more for now."""
        return not self._is_reading

    def push(self, chunk: Chunk) -> None:
        assert self.transport is not None
        self.bytes_written += len(chunk)
        self.writes += 1
        self.transport.write(chunk)

    def give_up(self) -> None:
        self.cut()

    def deliver(self, chunk: Chunk, size: int, source: Source) -> None:
        """Write to the socket; what comes after it was closed is dropped."""
        if self._is_closing:
            source.release(size)
        elif self._is_full or self.transport is None or self.outflow.queue:
            self.outflow.put(chunk, size, source)
        else:  # as the outflow would, without its ceremony
            self.outflow.pushed += len(chunk)
            self.push(chunk)
            source.release(size)

    def deliver_data(self, message: bytes, start: int, source: Source) -> None:
        """The payload of a DATA packet."""
        if self._is_closing:
            source.release(len(message))
        elif self._is_full or self.transport is None or self.outflow.queue:
            self.outflow.put(memoryview(message)[start:], len(message), source)
        else:
            size = len(message)
            self.outflow.pushed += size - start
            self.bytes_written += size - start
            self.writes += 1
            self.transport.write(memoryview(message)[start:])
            source.release(size)

    def release(self, size: int) -> None:
        self._under_way -= size
        if not self._is_reading and self._under_way < READ_AHEAD_BYTES and self.transport is not None:
            self._is_reading = True
            self.transport.resume_reading()

    def take(self, size: int) -> None:
        """So many bytes were read and are under way; too many stop the reading."""
        self._under_way += size
        self.bytes_read += size
        if self._is_reading and self._under_way >= READ_AHEAD_BYTES and self.transport is not None:
            self._is_reading = False
            self.transport.pause_reading()

    def flush_and_close(self) -> None:
        """Write what waits, then close; a peer that does not take it is given up after a while."""
        if self._is_closing:
            return
        self._is_closing = True
        transport, waits = self.transport, self.outflow.queue
        if transport is None:
            return
        if not waits:
            transport.close()
        if waits or transport.get_write_buffer_size():
            self._flush_timer = asyncio.get_running_loop().call_later(FLUSH_TIMEOUT_S, transport.abort)

    def keep_alive(self) -> None:
        """Notice when the peer is gone without a word; to be said of sockets that live for a while."""
        if not self._is_kept_alive and self.transport is not None:
            self._is_kept_alive = True
            with contextlib.suppress(OSError):  # it has just been closed
                keep_alive(self.transport.get_extra_info("socket"))

    def cut(self) -> None:
        """Close at once; what waits is dropped."""
        self._is_closing = True
        self.outflow.clear()
        if self.transport is not None:
            self.transport.abort()

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.transport.set_write_buffer_limits(high=WRITE_AHEAD_BYTES)

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self.outflow.drain()
        if self._is_closing and self.outflow.is_empty and self.transport is not None:
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_closing = True
        self.outflow.clear()
        self.transport = None
        if self._flush_timer is not None:
            self._flush_timer.cancel()
