"""An API server of loopback, with TLS and client certificates: it keeps objects by path, and can be told to refuse."""

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.rpc.certificates import Certificates


@dataclass
class FakeApi:
    """What is stored, what was asked for, and answers that come instead of the real ones, once each."""

    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    refusals: dict[tuple[str, str], list[tuple[int, bytes]]] = field(default_factory=dict)
    users: list[str] = field(default_factory=list)
    port: int = 0

    def refuse(self, method: str, path: str, code: int, reason: str, message: str) -> None:
        status = {"kind": "Status", "reason": reason, "message": message}
        self.refusals.setdefault((method, path), []).append((code, json.dumps(status).encode()))

    def answer(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, bytes]:
        path = path.partition("?")[0]
        self.asked.append((method, path))
        if waiting := self.refusals.get((method, path)):
            return waiting.pop(0)
        if method == "POST":
            return self._store(f"{path}/{body['metadata']['name']}", body, is_new=True)
        if method == "PATCH" and path in self.objects:
            return self._store(path, _merged(self.objects[path], body), is_new=False)
        if method == "PUT":
            return self._store(path, body, is_new=False)
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

        def _answer(self) -> None:
            peer = self.connection.getpeercert()
            api.users += [value for part in peer["subject"] for _, value in part]
            length = int(self.headers.get("Content-Length") or 0)
            code, data = api.answer(self.command, self.path, json.loads(self.rfile.read(length) or b"{}"))
            self.send_response(code)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PUT = do_PATCH = _answer  # noqa: N815

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
