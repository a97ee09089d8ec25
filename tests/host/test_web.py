"""Asking servers of this machine for their health, on loopback."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from garboard.host.web import Unreachable, probe


class Health(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(500 if self.path == "/broken" else 200)
        self.end_headers()
        self.wfile.write(f"{self.path} here".encode())

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def server() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Health) as httpd:
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{httpd.server_port}"
        httpd.shutdown()


def test_every_answer_is_one_whatever_its_status(server: str) -> None:
    well, broken = probe(f"{server}/healthz"), probe(f"{server}/broken")
    assert (well.status, well.text) == (200, "/healthz here")
    assert broken.status == 500
    assert well.date.endswith("GMT")


def test_proxies_are_not_asked(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    assert probe(f"{server}/healthz").status == 200


def test_nobody_there_is_told_in_words(server: str) -> None:
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1:1/healthz: Connection refused"):
        probe("http://127.0.0.1:1/healthz")


def test_a_server_that_speaks_no_tls_is_told(server: str) -> None:
    with pytest.raises(Unreachable, match="https://"):
        probe(server.replace("http://", "https://"))
