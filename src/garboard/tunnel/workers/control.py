"""The socket between a supervisor and a worker: messages both ways, and descriptors with them."""

import asyncio
import contextlib
import logging
import os
import select
import socket
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from garboard.errors import InvalidValue
from garboard.tunnel.log_text import quoted
from garboard.tunnel.workers.messages import ControlMessage, decode_message, encode_message

READ_BYTES: Final = 256 * 1024
DESCRIPTORS_AT_ONCE: Final = 250  # the kernel takes 253
MAX_MESSAGE: Final = 256 * 1024 * 1024
_LENGTH: Final = 4

log = logging.getLogger("garboard.tunnel")
TakeMessage = Callable[[ControlMessage, list[socket.socket]], None]


class Control:
    """One end. `on_message` gets each message with its sockets, `on_lost` is called once when the other end is gone."""

    def __init__(self, sock: socket.socket, on_message: TakeMessage, on_lost: Callable[[], None]) -> None:
        self._socket = sock
        self._on_message = on_message
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._unsent: deque[tuple[memoryview, list[int]]] = deque()
        self._received = bytearray()
        self._descriptors: deque[int] = deque()
        self.is_closed = False
        sock.setblocking(False)
        self._loop.add_reader(sock.fileno(), self._on_readable)

    def send(self, message: ControlMessage, sockets: Iterable[socket.socket] = ()) -> None:
        """Send it in its turn; nothing happens if the other end is gone. The sockets stay the caller's."""
        if self.is_closed:
            return
        descriptors = [os.dup(each.fileno()) for each in sockets]
        body = encode_message(message, len(descriptors))
        frame = memoryview(len(body).to_bytes(_LENGTH, "big") + body)
        # Descriptors go with the first bytes, one byte for each lot of them: that much is sent whole or not at all.
        lots = [descriptors[at : at + DESCRIPTORS_AT_ONCE] for at in range(0, len(descriptors), DESCRIPTORS_AT_ONCE)]
        for at, lot in enumerate(lots):
            self._unsent.append((frame[at : at + 1], lot))
        self._unsent.append((frame[len(lots) :], []))
        self._flush()

    def read_rest(self) -> None:
        """Take what the other end had sent before it ended."""
        if self.is_closed:
            return
        ready = select.poll()
        ready.register(self._socket, select.POLLIN)
        while not self.is_closed and ready.poll(0):
            self._on_readable()

    def close(self) -> None:
        """Go without a word; `on_lost` is not called."""
        if self.is_closed:
            return
        self.is_closed = True
        self._loop.remove_reader(self._socket.fileno())
        self._loop.remove_writer(self._socket.fileno())
        self._socket.close()
        for descriptor in [each for _, lot in self._unsent for each in lot] + list(self._descriptors):
            os.close(descriptor)
        self._unsent.clear()
        self._descriptors.clear()

    def _flush(self) -> None:
        while self._unsent:
            data, descriptors = self._unsent[0]
            try:
                sent = socket.send_fds(self._socket, [data], descriptors) if descriptors else self._socket.send(data)
            except (BlockingIOError, InterruptedError):
                self._loop.add_writer(self._socket.fileno(), self._flush)
                return
            except OSError:
                self._lose()
                return
            for descriptor in descriptors:
                os.close(descriptor)
            if sent < len(data):
                self._unsent[0] = data[sent:], []
            else:
                self._unsent.popleft()
        self._loop.remove_writer(self._socket.fileno())

    def _on_readable(self) -> None:
        try:
            data, descriptors, _, _ = socket.recv_fds(
                self._socket, READ_BYTES, DESCRIPTORS_AT_ONCE, socket.MSG_CMSG_CLOEXEC
            )
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data, descriptors = b"", []
        self._descriptors.extend(descriptors)
        if not data:
            self._lose()
            return
        self._received += data
        try:
            self._take_messages()
        except InvalidValue as error:
            log.error("control.broken reason=%s hint=%s", quoted(error.message), quoted(error.hint or ""))
            self._lose()

    def _take_messages(self) -> None:
        while not self.is_closed and len(self._received) >= _LENGTH:
            size = int.from_bytes(self._received[:_LENGTH], "big")
            if size > MAX_MESSAGE:
                raise InvalidValue(f"a message between a tunnel server and its workers has {size} bytes")
            if len(self._received) < _LENGTH + size:
                return
            body = bytes(self._received[_LENGTH : _LENGTH + size])
            del self._received[: _LENGTH + size]
            message, count = decode_message(body)
            if count > len(self._descriptors):
                raise InvalidValue(f"{count - len(self._descriptors)} sockets of a message did not arrive")
            sockets = [socket.socket(fileno=self._descriptors.popleft()) for _ in range(count)]
            for each in sockets:
                each.setblocking(False)
            self._on_message(message, sockets)

    def _lose(self) -> None:
        if not self.is_closed:
            self.close()
            self._on_lost()


def control_pair() -> tuple[socket.socket, socket.socket]:
    """The two ends: for the supervisor, and for a worker, which inherits its own."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    for each in (ours, theirs):
        with contextlib.suppress(OSError):
            each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    return ours, theirs
