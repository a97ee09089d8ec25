"""Proxies of loopback: CONNECT over HTTP or HTTPS, and SOCKS 5; wherever a client wants to go, it gets to one port."""

import base64
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field

from tools.harness.certificates import Certificates


@dataclass
class ProxyServer:
    """What a proxy was asked for, and the user whom it requires; `to_port` is where all connections lead."""

    to_port: int
    user: str = ""
    asked: list[str] = field(default_factory=list)
    port: int = 0

    def accept_connect(self, client: socket.socket) -> bool:
        request = b""
        while not request.endswith(b"\r\n\r\n"):
            request += client.recv(1)
        line, *headers = request.decode().strip().split("\r\n")
        self.asked.append(line)
        wanted = f"Proxy-Authorization: Basic {base64.b64encode(self.user.encode()).decode()}"
        if self.user and wanted not in headers:
            client.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            return False
        client.sendall(b"HTTP/1.1 200 Connection established\r\nVia: 1.1 test\r\n\r\n")
        return True

    def accept_socks(self, client: socket.socket) -> bool:
        methods = client.recv(client.recv(2)[1])
        client.sendall(bytes([5, 2 if self.user else 0]))
        if self.user:
            assert 2 in methods
            name = client.recv(client.recv(2)[1])
            password = client.recv(client.recv(1)[0])
            is_right = b":".join((name, password)).decode() == self.user
            client.sendall(bytes([1, 0 if is_right else 1]))
            if not is_right:
                return False
        kind = client.recv(4)[3]
        host = client.recv(client.recv(1)[0]).decode() if kind == 3 else client.recv({1: 4, 4: 16}[kind]).hex()
        self.asked.append(f"{host}:{int.from_bytes(client.recv(2), 'big')}")
        client.sendall(b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00")
        return True


@contextmanager
def serving_proxy(
    proxy: ProxyServer, accept: Callable[[socket.socket], bool], tls: Certificates | None = None
) -> Iterator[ProxyServer]:
    """Serve until the block ends; with certificates, the proxy itself speaks TLS."""
    listener = socket.create_server(("127.0.0.1", 0))
    proxy.port = listener.getsockname()[1]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if tls:
        context.load_cert_chain(tls.server, tls.server_key)

    def serve() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=handle, args=(client,), daemon=True).start()

    def handle(client: socket.socket) -> None:
        with ExitStack() as stack, suppress(OSError):
            client = stack.enter_context(context.wrap_socket(client, server_side=True) if tls else client)
            if accept(client):
                server = stack.enter_context(socket.create_connection(("127.0.0.1", proxy.to_port)))
                back = threading.Thread(target=pump, args=(server, client), daemon=True)
                back.start()
                pump(client, server)
                back.join(10)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(10)


def pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
