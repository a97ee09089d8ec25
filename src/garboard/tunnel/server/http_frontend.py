"""The HTTP-CONNECT frontend: one client socket, which becomes the connection once the dial has succeeded."""

import asyncio
import re
import time
from http import HTTPStatus
from typing import Final

from garboard.tunnel.frontend.protocol import NO_AGENT, TOO_MANY
from garboard.tunnel.frontend.socket_frontend import SocketFrontend
from garboard.tunnel.frontend.states import IDLE
from garboard.tunnel.server.proxy import Proxy
from garboard.tunnel.wire.flow import NO_SOURCE

MAX_HEAD_BYTES: Final = 64 * 1024
HEAD_TIMEOUT_S: Final = 60.0
CONNECTED: Final = b"HTTP/1.1 200 Connection Established\r\n\r\n"

_REQUEST = re.compile(rb"([A-Z]+) ([\x21-\x7e]+) HTTP/1\.[01]")


def status_of_dial_error(error: str) -> HTTPStatus:
    """The status for a dial that failed, by the words of the error, as the stock server chooses it."""
    text = error.lower()
    if error == NO_AGENT:
        return HTTPStatus.INTERNAL_SERVER_ERROR
    if "timeout" in text or "deadline exceeded" in text:
        return HTTPStatus.GATEWAY_TIMEOUT
    if "too many open files" in text or error == TOO_MANY:
        return HTTPStatus.SERVICE_UNAVAILABLE
    return HTTPStatus.BAD_GATEWAY


class HttpFrontend(SocketFrontend):
    """First a request, then the tunnel's raw bytes."""

    _head = b""

    def __init__(self, proxy: Proxy) -> None:
        super().__init__(proxy)
        self._proxy = proxy
        self.outflow.waited = proxy.write_seconds.observe

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._proxy.http_connections += 1
        self._proxy.unread[self] = time.monotonic() + HEAD_TIMEOUT_S

    def data_received(self, data: bytes) -> None:
        if self._pipe is None and self.tunnel.state is IDLE and not self._is_closing:
            self._read_head(data)
        else:
            super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._proxy.http_connections -= 1
        self._proxy.unread.pop(self, None)
        super().connection_lost(exc)

    def accepted(self) -> None:
        self.deliver(CONNECTED, 0, NO_SOURCE)

    def refused(self, error: str) -> None:
        self._refuse(status_of_dial_error(error), _words(error))

    def _read_head(self, data: bytes) -> None:
        if self._head:
            data = self._head + data
        head, end, rest = data.partition(b"\r\n\r\n")
        if not end:
            self._head = data
            if len(data) > MAX_HEAD_BYTES:
                self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the request is too long")
            return
        self._head = b""
        self._proxy.unread.pop(self, None)
        request = _REQUEST.fullmatch(head.partition(b"\r\n")[0])
        if request is None:
            self._refuse(HTTPStatus.BAD_REQUEST, "this is no HTTP/1.1 request")
        elif request[1] != b"CONNECT":
            self._refuse(HTTPStatus.METHOD_NOT_ALLOWED, "this proxy only supports CONNECT passthrough")
        else:
            self._dial(request[2].decode("ascii"), rest)

    def _dial(self, address: str, early: bytes) -> None:
        if early:
            self.keep_early(early)
        self.tunnels.dial_to(self.tunnel, address)

    def _refuse(self, status: HTTPStatus, text: str) -> None:
        body = f"{text}\n".encode()
        head = f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: text/plain; charset=utf-8\r\n"
        self.deliver(f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body, 0, NO_SOURCE)
        self._proxy.unread.pop(self, None)
        self.flush_and_close()


def _words(error: str) -> str:
    return "currently no tunnels available" if error == NO_AGENT else error
