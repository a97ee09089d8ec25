"""A TCP or unix connection at the outer end of a tunnel: a client, or an endpoint."""

import asyncio
import contextlib
import fcntl
import logging
import socket
import struct
import termios
import time
from typing import Final, Protocol, cast

from garboard.tunnel.wire.flow import ByteSource, Chunk, Outflow, StallWatch

READ_AHEAD_BYTES: Final = 64 * 1024
WRITE_AHEAD_BYTES: Final = 256 * 1024  # more than one payload, or every one of them would fill the socket
# A peer may pause this long while its connection ends; one that takes a byte now and then may take for ever.
FLUSH_STALL_S: Final = 120.0
# So much a peer is listened to after it was told the end: an endpoint may pour for ever.
OVERHEARD_BYTES: Final = 16 * 1024 * 1024
SETTLED_S: Final = 0.2
_RESET: Final = struct.pack("ii", 1, 0)  # SO_LINGER: the peer sees a reset, not an end
# As many as the kernel lets wait (net.core.somaxconn): a unix socket with fewer turns a burst of clients away.
BACKLOG: Final = 4096


# Go's values: a peer that died without closing is noticed after two and a half minutes.
_KEEPALIVE: Final = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 15),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 15),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 9),
)
KEEPALIVE_EVERY_S: Final = 10.0
# As gRPC has it: what was sent on a link and is not confirmed for so long, is never going to be.
USER_TIMEOUT_MS: Final = 20_000

log = logging.getLogger("garboard.tunnel")


class Settable(Protocol):
    """A socket of any event loop."""

    @property
    def family(self) -> int: ...

    def setsockopt(self, level: int, name: int, value: int, /) -> None: ...


def keep_alive(peer: Settable) -> None:
    """Turn TCP keepalive on; sockets that a listening one accepts inherit it."""
    if peer.family in (socket.AF_INET, socket.AF_INET6):
        for option in _KEEPALIVE:
            peer.setsockopt(*option)


def give_up_soon(peer: Settable) -> None:
    """Notice within seconds that nobody confirms what is sent; for the links between agents and servers.

    Not for clients and endpoints, which may stop reading for as long as they like: to the kernel that looks the same.
    """
    if peer.family in (socket.AF_INET, socket.AF_INET6):
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, USER_TIMEOUT_MS)


def address_text(peer: object) -> str:
    """The address of a peer as the event loop gives it, as `host:port`; empty for a unix socket."""
    if not isinstance(peer, tuple):
        return ""
    host, port = peer[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def reset(transport: asyncio.WriteTransport) -> None:
    """Close at once, so that the peer sees a reset; a peer at a unix socket, which knows none, sees an end."""
    peer: socket.socket | None = transport.get_extra_info("socket")
    if peer is not None:
        with contextlib.suppress(OSError):  # one that is gone needs none
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    transport.abort()


class SocketEnd(asyncio.Protocol):
    """Reads no further ahead than the tunnel takes, and buffers no more than it may for a socket that is slow."""

    shares_credit = False
    takes_in_steps = False
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
    _ends_in_reset = False
    _has_peer_ended = False
    _lingers = False
    _overheard = 0
    _was_cut = False
    _flushed_bytes = -1
    _flushed_at = 0.0

    def __init__(self, watch: StallWatch) -> None:
        self.outflow = Outflow(self, watch)

    # What the tunnel's side uses.

    @property
    def has_room(self) -> bool:
        return self.transport is not None and not self._is_full

    @property
    def backlog(self) -> int:
        """What the peer's kernel has not confirmed: in the loop's buffer, and in that of our kernel.

        The loop writes again when a third of the kernel's buffer is free, which takes a slow reader many seconds.
        """
        if self.transport is None:
            return 0
        unsent = self.transport.get_write_buffer_size()
        with contextlib.suppress(OSError):
            answer = fcntl.ioctl(self.transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, bytes(4))
            unsent += int.from_bytes(answer, "little")
        return unsent

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

    def deliver(self, chunk: Chunk, size: int, source: ByteSource) -> None:
        """Write to the socket; what comes after it was closed is dropped."""
        if self._is_closing:
            source.release(size)
        elif self._is_full or self.transport is None or self.outflow.queue:
            self.outflow.put(chunk, size, source)
        else:  # as the outflow would, without the call
            self.outflow.pushed += len(chunk)
            self.push(chunk)
            source.release(size)

    def deliver_data(self, message: bytes, start: int, source: ByteSource) -> None:
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
        """Write what waits, then close; a peer that takes nothing of it for long is given up."""
        self._finish(ends_in_reset=False)

    def flush_and_reset(self) -> None:
        """The same for a connection that was cut elsewhere: its peer must not take what came for all there is."""
        self._finish(ends_in_reset=True)

    def check_flush(self, now: float) -> None:
        """Asked by the watch, and when the loop's buffer is empty: end, go on waiting, or give up (`Flushing`)."""
        if self.transport is None:
            return
        # Also what only the kernel still has: it drops that if the peer says something to a socket that is closed.
        unsent = self.backlog
        flushed = self.outflow.pushed - unsent
        if not self.outflow.queue and not unsent and self._is_settled(now) and self._may_end:
            self._end(now)
        elif flushed != self._flushed_bytes:
            self._flushed_bytes, self._flushed_at = flushed, now
        elif now - self._flushed_at >= FLUSH_STALL_S:
            self._let_go(unsent)

    def keep_alive(self) -> None:
        """Turn TCP keepalive on; for sockets that have lived for a while, since it costs four system calls."""
        if not self._is_kept_alive and self.transport is not None:
            self._is_kept_alive = True
            with contextlib.suppress(OSError):  # it has just been closed
                keep_alive(self.transport.get_extra_info("socket"))

    def cut(self) -> None:
        """Reset at once; what waits is dropped, and a peer that sees a clean end would take the rest for all."""
        self._is_closing = self._was_cut = True
        self.outflow.clear()
        if self.transport is not None:
            reset(self.transport)

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.transport.set_write_buffer_limits(high=WRITE_AHEAD_BYTES)

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self.outflow.drain()
        if self._is_closing:
            self.check_flush(time.monotonic())

    def data_received(self, data: bytes) -> None:
        """The peer says what nobody waits for any more; what it says beyond the limit is not even read."""
        if self._lingers and self.transport is not None:
            self._overheard += len(data)
            if self._overheard > OVERHEARD_BYTES:
                self.transport.pause_reading()

    def eof_received(self) -> bool:
        """The peer sends no more; whether the connection stays, for what it has not read yet."""
        self._has_peer_ended = True
        return not self._lingers and self.transport is not None and self.transport.can_write_eof()

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_closing = True
        self.outflow.close()
        self.outflow.watch.flushing.discard(self)
        self.transport = None

    def _is_settled(self, now: float) -> bool:
        """Whether nothing is left where it cannot be seen, below TLS: what was there has had the time to go on."""
        assert self.transport is not None
        is_plain = self.transport.get_extra_info("ssl_object") is None
        return not self._ends_in_reset or is_plain or 0 < self._flushed_at <= now - SETTLED_S

    @property
    def _may_end(self) -> bool:
        """Whether it need not be listened to any more."""
        return not self._lingers or self._overheard > OVERHEARD_BYTES

    def _finish(self, *, ends_in_reset: bool) -> None:
        if self._is_closing:
            return
        self._is_closing = True
        self._ends_in_reset = ends_in_reset
        transport = self.transport
        if transport is None:
            return
        if not ends_in_reset and not self.outflow.queue and not transport.get_write_buffer_size():
            if self._may_close(transport):
                transport.close()
            else:
                self.outflow.watch.flushing.add(self)
                self._linger(transport, time.monotonic())
            return
        # Not closed before all is written: TLS would end after a fixed time then, whatever the progress.
        self.outflow.let_go()
        self.outflow.watch.flushing.add(self)
        transport.set_write_buffer_limits(high=1, low=0)  # the loop tells when its buffer is empty
        self.check_flush(time.monotonic())

    def _end(self, now: float) -> None:
        transport = self.transport
        assert transport is not None
        if self._ends_in_reset:
            self.outflow.watch.flushing.discard(self)
            self.cut()
        elif self._lingers or self._has_peer_ended or transport.is_closing() or not transport.can_write_eof():
            self.outflow.watch.flushing.discard(self)
            transport.close()
        else:
            self._linger(transport, now)

    def _may_close(self, transport: asyncio.Transport) -> bool:
        """Whether nothing is lost with the socket: the kernel sends on, but only until the peer says something.

        A unix socket has given all to its peer already, and TLS listens by itself until its peer has ended.
        """
        if self._has_peer_ended or transport.is_closing() or not transport.can_write_eof():
            return True
        return transport.get_extra_info("socket").family == socket.AF_UNIX or not self.backlog

    def _linger(self, transport: asyncio.Transport, now: float) -> None:
        """Tell the peer the end, and listen to it until it ends, too.

        A closed socket answers what its peer still says with a reset, on which the kernel drops what it has not sent,
        and many clients what they have not read.
        """
        self._lingers, self._flushed_at = True, now
        with contextlib.suppress(OSError):  # its peer is gone, as the loop is about to tell
            transport.write_eof()
        if not self._is_reading:
            self._is_reading = True
            transport.resume_reading()

    def _let_go(self, unsent: int) -> None:
        """The peer has taken nothing for long: reset it, unless it has everything and only does not end."""
        assert self.transport is not None
        if self._lingers and not unsent:
            self.transport.close()
        else:
            log.warning('connection.cut reason="its peer took nothing for %.0f s"', FLUSH_STALL_S)
            self.cut()
