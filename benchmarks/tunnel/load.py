"""The load: clients of an HTTP-CONNECT front end on a unix socket, and what they see."""

import contextlib
import selectors
import socket
import ssl
import struct
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tools.harness.certificates import Certificates

BUFFER = memoryview(bytearray(1024 * 1024))
CHUNK = memoryview(bytes(256 * 1024))
MESSAGE = b"m" * 100
TIMEOUT_S = 60.0
REFUSALS = 1000  # in a row; then there is no room for one connection more


class Refused(ConnectionError):
    """The front end has answered, and not with 200; its status tells why."""

    def __init__(self, head: bytes) -> None:
        super().__init__(head[:200].decode())
        self.status = int(head.split(b" ", 2)[1])


@dataclass(frozen=True, slots=True)
class Ports:
    """Of the processes behind the tunnel."""

    echo: int
    source: int
    sink: int


def connect(front: str, port: int) -> socket.socket:
    """A connection through the tunnel to a port of this machine."""
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(TIMEOUT_S)
    client.connect(front)
    client.sendall(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        got = client.recv(1)
        if not got:
            raise ConnectionError(f"the front end closed after {head!r}")
        head += got
    if not head.startswith(b"HTTP/1.1 200 "):
        client.close()
        raise Refused(head)
    return client


def connect_where_there_is_room(front: str, port: int) -> socket.socket:
    """As `connect`, and once more after each 503: a worker whose share of a quota is used up leaves others theirs."""
    for _ in range(REFUSALS):
        try:
            return connect(front, port)
        except Refused as refused:
            if refused.status != 503:
                raise
            last = refused
    raise last


@contextlib.contextmanager
def connections(front: str, port: int, count: int) -> Iterator[list[socket.socket]]:
    opened: list[socket.socket] = []
    try:
        opened.extend(connect_where_there_is_room(front, port) for _ in range(count))
        yield opened
    finally:
        for client in opened:
            client.close()


def download(front: str, port: int, streams: int, total: int) -> float:
    """Bytes per second that come from the source, over so many connections at once."""
    with connections(front, port, streams) as clients, selectors.DefaultSelector() as selector:
        for client in clients:
            client.setblocking(False)
            selector.register(client, selectors.EVENT_READ)
            client.send(b"g")
        received, began = 0, time.perf_counter()
        while received < total:
            for key, _ in selector.select(TIMEOUT_S):
                assert isinstance(key.fileobj, socket.socket)
                received += key.fileobj.recv_into(BUFFER)
        return received / (time.perf_counter() - began)


def upload(front: str, port: int, streams: int, total: int) -> float:
    """Bytes per second that the sink confirms."""
    each = total // streams
    with connections(front, port, streams) as clients, selectors.DefaultSelector() as selector:
        left = dict.fromkeys(clients, each)
        began = time.perf_counter()
        for client in clients:
            client.sendall(struct.pack(">Q", each))
            client.setblocking(False)
            selector.register(client, selectors.EVENT_WRITE)
        waiting = len(clients)
        while waiting:
            for key, events in selector.select(TIMEOUT_S):
                client = key.fileobj  # type: ignore[assignment]
                if events & selectors.EVENT_READ:
                    assert client.recv(1) == b"k"
                    waiting -= 1
                    continue
                left[client] -= client.send(CHUNK[: left[client]])
                if not left[client]:
                    selector.modify(client, selectors.EVENT_READ)
        return each * streams / (time.perf_counter() - began)


def upload_rate(front: str, port: int, streams: int, total: int) -> float:
    """As `upload`, but no stream has a share of its own to finish: it ends when so much has been confirmed in all.

    Workers get streams by chance. With equal shares the last byte is that of the worker with most of them, while the
    others have long been idle: then the spread of the streams is measured, and not what the workers can carry.
    """
    unit = struct.pack(">Q", len(CHUNK)) + bytes(CHUNK)
    with connections(front, port, streams) as clients, selectors.DefaultSelector() as selector:
        left = {client: memoryview(unit) for client in clients}
        for client in clients:
            client.setblocking(False)
            selector.register(client, selectors.EVENT_READ | selectors.EVENT_WRITE)
        confirmed, began = 0, time.perf_counter()
        while confirmed < total:
            for key, events in selector.select(TIMEOUT_S):
                client = key.fileobj  # type: ignore[assignment]
                if events & selectors.EVENT_READ:
                    confirmed += len(client.recv(4096)) * len(CHUNK)
                if events & selectors.EVENT_WRITE:
                    left[client] = left[client][client.send(left[client]) :] or memoryview(unit)
        return confirmed / (time.perf_counter() - began)


@dataclass(frozen=True, slots=True)
class Latency:
    p50_us: float
    p99_us: float
    per_second: float
    errors: int = 0


def echo(front: str, port: int, count: int, seconds: float) -> Latency:
    """Round trips of 100 bytes, each connection one at a time, all of them at once."""
    with connections(front, port, count) as clients:
        return echo_on(clients, seconds)


def echo_on(clients: list[socket.socket], seconds: float, pause_s: float = 0.0) -> Latency:
    """With a pause each connection asks so often and no more: load that leaves the ends time to breathe."""
    times: list[float] = []
    sent: dict[socket.socket, float] = {}
    clock = time.perf_counter
    with selectors.DefaultSelector() as selector:
        for client in clients:
            client.setblocking(False)
            selector.register(client, selectors.EVENT_READ)
        began = clock()
        due = [(began + pause_s * at / max(len(clients), 1), client) for at, client in enumerate(clients)]
        while clock() < began + seconds:
            now = clock()
            while due and due[0][0] <= now:
                client = due.pop(0)[1]
                sent[client] = clock()
                client.send(MESSAGE)
            wait_s = due[0][0] - now if due else 1.0
            for key, _ in selector.select(min(max(wait_s, 0), 1.0)):
                client = key.fileobj  # type: ignore[assignment]
                if len(client.recv(4096)) == 0:
                    raise ConnectionError("a connection ended")
                now = clock()
                if client not in sent:
                    continue  # the answer to what an earlier measurement asked
                times.append(now - sent.pop(client))
                if pause_s:
                    due.append((now + pause_s, client))
                else:
                    sent[client] = now
                    client.send(MESSAGE)
        took = clock() - began
        late = [clock() - at for at in sent.values() if clock() - at > 1.0]
    if not times:
        return Latency(float("inf"), float("inf"), 0.0, len(clients))
    times = sorted([*times, *late])
    return Latency(
        times[len(times) // 2] * 1e6, times[len(times) * 99 // 100] * 1e6, len(times) / took, errors=len(late)
    )


def connects_per_second(front: str, port: int, at_once: int, total: int) -> float:
    """Connect, one byte there and back, close; so many at a time."""
    request = f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
    began, started, done = time.perf_counter(), 0, 0
    heads: dict[socket.socket, bytes] = {}
    with selectors.DefaultSelector() as selector:

        def start() -> None:
            client = socket.socket(socket.AF_UNIX)
            client.settimeout(TIMEOUT_S)
            client.connect(front)
            client.send(request)
            client.setblocking(False)
            heads[client] = b""
            selector.register(client, selectors.EVENT_READ)

        while done < total:
            while started - done < at_once and started < total:
                start()
                started += 1
            for key, _ in selector.select(TIMEOUT_S):
                client = key.fileobj
                assert isinstance(client, socket.socket)
                if heads[client] is not None and not heads[client].endswith(b"\r\n\r\n"):
                    got = client.recv(4096)
                    heads[client] += got
                    if not got or not heads[client].startswith(b"HTTP/1.1 200"[: len(heads[client])]):
                        raise ConnectionError(heads[client].decode())
                    if heads[client].endswith(b"\r\n\r\n"):
                        client.send(b"x")
                    continue
                if client.recv(10) != b"x":
                    raise ConnectionError("no echo")
                selector.unregister(client)
                client.close()
                del heads[client]
                done += 1
    return total / (time.perf_counter() - began)


def handshakes_per_second(port: int, keys: Certificates, at_once: int, total: int) -> float:
    """TLS with the port for agents, a certificate on either side, and nothing after it."""
    # A client that knows the authority would show it, too: OpenSSL does so, and the stock agent does not. A second
    # certificate costs a server a fifth of the handshake more.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.load_cert_chain(keys.client, keys.client_key)
    context.set_alpn_protocols(["h2"])

    def shake(_: int) -> None:
        plain = socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
        with plain, context.wrap_socket(plain, server_hostname="localhost") as secure:
            secure.recv(1)  # the server's SETTINGS: it has verified the certificate

    with ThreadPoolExecutor(at_once) as threads:
        began = time.perf_counter()
        for _ in threads.map(shake, range(total)):
            pass
        return total / (time.perf_counter() - began)
