"""TLS inside a TLS connection, as to a server behind an https:// proxy; the ssl module itself nests none."""

import io
import ssl
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar

_READ_BYTES = 64 * 1024
Value = TypeVar("Value")


class NestedTls:
    """The part of a socket that our clients use, with TLS of its own on top of `outer`; the handshake is made here."""

    def __init__(self, outer: ssl.SSLSocket, context: ssl.SSLContext, server_name: str) -> None:
        self._outer = outer
        self._received, self._to_send = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._received, self._to_send, server_hostname=server_name)
        self._readers = 0
        self._is_closed = False
        self._carry_out(self._tls.do_handshake)

    def selected_alpn_protocol(self) -> str | None:
        return self._tls.selected_alpn_protocol()

    def settimeout(self, seconds: float | None) -> None:
        self._outer.settimeout(seconds)

    def fileno(self) -> int:
        return self._outer.fileno()

    def recv(self, size: int) -> bytes:
        """Return what has arrived, and nothing at the end; raises as an SSLSocket does if there is nothing yet."""
        try:
            return self._carry_out(partial(self._tls.read, size))
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return b""

    def send(self, data: bytes) -> int:
        self.sendall(data)
        return len(data)

    def sendall(self, data: bytes) -> None:
        sent = 0
        while sent < len(data):
            sent += self._carry_out(partial(self._tls.write, memoryview(data)[sent:]))

    def makefile(self, mode: str) -> io.BufferedReader:
        """Return a file to read from, which stays readable when the connection is closed before it is."""
        assert mode == "rb", "http.client reads answers from a file, and writes requests to the socket"
        self._readers += 1
        return io.BufferedReader(_Reader(self))

    def close(self) -> None:
        self._is_closed = True
        self._close_if_unused()

    def reader_closed(self) -> None:
        self._readers -= 1
        self._close_if_unused()

    def _close_if_unused(self) -> None:
        if self._is_closed and self._readers <= 0:
            self._outer.close()

    def _carry_out(self, call: Callable[[], Value]) -> Value:
        """Call until TLS has read all that it needs, and send all that it has written."""
        while True:
            try:
                result = call()
            except ssl.SSLWantReadError:
                self._flush()
                self._fill()
            except ssl.SSLError:
                with suppress(OSError):  # the alert that tells the other end why
                    self._flush()
                raise
            else:
                self._flush()
                return result

    def _flush(self) -> None:
        if data := self._to_send.read():
            self._outer.sendall(data)

    def _fill(self) -> None:
        if data := self._outer.recv(_READ_BYTES):
            self._received.write(data)
        else:
            self._received.write_eof()


class _Reader(io.RawIOBase):
    """The bytes that arrive, as a file."""

    def __init__(self, connection: NestedTls) -> None:
        self._connection = connection

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # io hands over nothing else
        data = self._connection.recv(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._connection.reader_closed()
        super().close()
