"""What stands behind the tunnel: an echo, a source that is endless once it got a byte, and a sink, in one process.

    python -m benchmarks.tunnel.backends

prints its three ports and serves until it is ended. A sink reads eight bytes, which tell how many follow, answers
with one byte once it has them all, and begins again.
"""

import contextlib
import selectors
import socket
import struct
from collections.abc import Callable

CHUNK = bytes(256 * 1024)
BUFFER = memoryview(bytearray(1024 * 1024))


class Loop:
    """Sockets that call back when they are ready."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()

    def listen(self, make: Callable[["Loop", socket.socket], Callable[[], None]]) -> int:
        listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
        listener.setblocking(False)

        def accept() -> None:
            with contextlib.suppress(BlockingIOError):
                while True:
                    connection, _ = listener.accept()
                    connection.setblocking(False)
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    self._selector.register(connection, selectors.EVENT_READ, make(self, connection))

        self._selector.register(listener, selectors.EVENT_READ, accept)
        return int(listener.getsockname()[1])

    def watch(self, connection: socket.socket, events: int, ready: Callable[[], None]) -> None:
        self._selector.modify(connection, events, ready)

    def close(self, connection: socket.socket) -> None:
        self._selector.unregister(connection)
        connection.close()

    def run(self) -> None:
        while True:
            for key, _ in self._selector.select():
                key.data()


def echo(loop: Loop, connection: socket.socket) -> Callable[[], None]:
    def ready() -> None:
        try:
            data = connection.recv(65536)
            if data:
                connection.send(data)
            else:
                loop.close(connection)
        except OSError:
            loop.close(connection)

    return ready


def source(loop: Loop, connection: socket.socket) -> Callable[[], None]:
    is_pouring = False

    def ready() -> None:
        nonlocal is_pouring
        try:
            if is_pouring:
                connection.send(CHUNK)
            elif connection.recv(1):
                is_pouring = True
                loop.watch(connection, selectors.EVENT_WRITE, ready)
            else:
                loop.close(connection)
        except BlockingIOError:
            pass
        except OSError:
            loop.close(connection)

    return ready


def sink(loop: Loop, connection: socket.socket) -> Callable[[], None]:
    head, missing = bytearray(), 0

    def ready() -> None:
        nonlocal missing
        try:
            if len(head) < 8:
                got = connection.recv(8 - len(head))
                if not got:
                    loop.close(connection)
                head.extend(got)
                missing = struct.unpack(">Q", head)[0] if len(head) == 8 else 0
                return
            size = connection.recv_into(BUFFER[:missing])
            missing -= size
            if not size:
                loop.close(connection)
            elif not missing:
                head.clear()
                connection.send(b"k")
        except OSError:
            loop.close(connection)

    return ready


def main() -> None:
    loop = Loop()
    print(*(loop.listen(make) for make in (echo, source, sink)), flush=True)
    loop.run()


if __name__ == "__main__":
    main()
