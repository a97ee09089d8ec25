"""An API server of loopback, with TLS and client certificates: it keeps objects by path, and can be told to refuse."""

import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, TypeAlias

from tools.harness.certificates import Certificates

# The connection ends before the request is carried out, or after that and before it is answered, or when the client
# is tired of waiting for the answer.
Fault: TypeAlias = Literal["unheard", "unanswered", "silent"]


@dataclass
class FakeApi:
    """What is stored, what was asked for, and answers or faults that come instead of the real ones, once each."""

    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)
    content_types: list[str] = field(default_factory=list)
    refusals: dict[tuple[str, str], list[tuple[int, bytes]]] = field(default_factory=dict)
    faults: dict[tuple[str, str], list[Fault]] = field(default_factory=dict)
    retry_after: str = ""  # the header of every refusal
    connections: list[socket.socket] = field(default_factory=list)
    users: list[str] = field(default_factory=list)
    port: int = 0

    def refuse(self, method: str, path: str, code: int, reason: str, message: str) -> None:
        status = {"kind": "Status", "reason": reason, "message": message}
        self.refusals.setdefault((method, path), []).append((code, json.dumps(status).encode()))

    def fail(self, method: str, path: str, *faults: Fault) -> None:
        self.faults.setdefault((method, path), []).extend(faults)

    def next_fault(self, method: str, path: str) -> Fault | None:
        waiting = self.faults.get((method, path.partition("?")[0]))
        return waiting.pop(0) if waiting else None

    def hang_up(self) -> None:
        """End every connection, as a server does with those that were idle for long."""
        for each in self.connections:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self.connections.clear()

    def answer(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, bytes]:
        path, _, query = path.partition("?")
        self.asked.append((method, path))
        self.queries.append(query)
        if waiting := self.refusals.get((method, path)):
            return waiting.pop(0)
        if method == "POST":
            return self._store(f"{path}/{body['metadata']['name']}", body, is_new=True)
        if method == "PATCH" and path in self.objects:
            return self._store(path, _merged(self.objects[path], body), is_new=False)
        if method == "PUT":
            return self._store(path, body, is_new=False)
        if method == "DELETE" and path in self.objects:
            del self.objects[path]
            return 200, b'{"kind": "Status"}'
        below = [each for name, each in self.objects.items() if name.rpartition("/")[0] == path]
        found = self.objects.get(path) or ({"items": below} if below else None)
        return (200, json.dumps(found).encode()) if found else (404, b'{"kind": "Status", "reason": "NotFound"}')

    def _store(self, path: str, body: dict[str, Any], *, is_new: bool) -> tuple[int, bytes]:
        if is_new and path in self.objects:
            return 409, b'{"kind": "Status", "reason": "AlreadyExists", "message": "it already exists"}'
        self.objects[path] = body
        return 200, json.dumps(body).encode()


def _merged(held: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """Merge maps and replace all else, which is what a strategic merge does to lists without a merge key."""
    new = {
        key: _merged(held[key], value) if isinstance(value, dict) and isinstance(held.get(key), dict) else value
        for key, value in patch.items()
    }
    return {**held, **new}


@contextmanager
def serving(api: FakeApi, certificates: Certificates) -> Iterator[FakeApi]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Header and body are two small packets; the second would wait for the delayed acknowledgement of the first.
        disable_nagle_algorithm = True

        def setup(self) -> None:
            super().setup()
            api.connections.append(self.connection)

        def _answer(self) -> None:
            peer = self.connection.getpeercert()
            api.users += [value for part in peer["subject"] for _, value in part]
            api.content_types.append(self.headers.get("Content-Type") or "")
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length) or b"{}")
            fault = api.next_fault(self.command, self.path)
            code, data = (0, b"") if fault == "unheard" else api.answer(self.command, self.path, body)
            if fault:
                self.close_connection = True
                if fault == "silent":
                    self.rfile.read(1)
                return
            self.send_response(code)
            if api.retry_after and code >= 400:
                self.send_header("Retry-After", api.retry_after)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            return

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=certificates.ca)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(certificates.server, certificates.server_key)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        server.socket = context.wrap_socket(server.socket, server_side=True)
        api.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield api
        finally:
            server.shutdown()
            thread.join()
