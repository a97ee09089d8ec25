"""Constant reads and writes of a cluster, each on a new connection, and what clients saw of an outage."""

import json
import socket
import ssl
import threading
import time
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from garboard.net.tls import new_client_context
from garboard.pki.kubeconfig import CurrentContext, read_kubeconfig
from garboard.rpc.connection import Connection
from garboard.rpc.events import ConnectionEnded, DataReceived, HeadersReceived, StreamReset
from garboard.rpc.headers import Headers

_CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
_NAME = "constant-load"
VERBS = ("GET", "PATCH")
_MERGE = "application/merge-patch+json"
_TIMEOUT_S = 15.0
_TRIES = 5
# What the project has set itself for upgrades and changes; and where somebody else keeps the processors busy, only that
# nobody waits in vain.
_LONGEST_GAP_S, _ON_BUSY_MACHINE_S = 1.0, 5.0
_LOOKED_AT_S = 2.0


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, answered or failed after as many tries as a client of Go makes; `problem` is empty if it is well."""

    verb: str
    began_s: float
    ended_s: float
    problem: str = ""


@dataclass
class ApiLoad:
    """Two clients that read and two that write, each with a new connection every 100 ms; `with` runs them."""

    kubeconfig: Path
    every_s: float = 0.1
    asked: list[Asked] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)  # how busy the processors were before and afterwards
    _ends: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._context, self._server = _connection(read_kubeconfig(self.kubeconfig.read_bytes(), str(self.kubeconfig)))
        made = self._ask(
            "POST", _CONFIG_MAPS, {"metadata": {"name": _NAME}, "data": {"count": "0"}}, "application/json"
        )
        assert made in ("", "409"), made
        self.shares.append(busy_share(_LOOKED_AT_S))
        self._threads = [threading.Thread(target=self._keep_asking, args=(verb,)) for verb in 2 * VERBS]
        for each in self._threads:
            each.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ends.set()
        for each in self._threads:
            each.join()
        self.shares.append(busy_share(_LOOKED_AT_S))

    @property
    def gap_limit_s(self) -> float:
        """For how long nobody may have had an answer."""
        return _ON_BUSY_MACHINE_S if max(self.shares) > 0.5 else _LONGEST_GAP_S

    @property
    def failed(self) -> list[Asked]:
        return [each for each in self.asked if each.problem]

    @property
    def longest_gap_s(self) -> float:
        """The longest time without any answer to those who read, or to those who write."""
        return max(_longest_gap_s([each for each in self.asked if each.verb == verb]) for verb in VERBS)

    def __str__(self) -> str:
        return f"{len(self.asked)} requests, {len(self.failed)} failed, longest gap {self.longest_gap_s:.2f} s"

    def _keep_asking(self, verb: str) -> None:
        count = 0
        while not self._ends.is_set():
            count += 1
            body = {"data": {"count": str(count)}} if verb == "PATCH" else None
            began_s = time.monotonic()
            problem = self._ask(verb, f"{_CONFIG_MAPS}/{_NAME}", body, _MERGE)
            self.asked.append(Asked(verb, began_s, time.monotonic(), problem))
            self._ends.wait(max(0.0, self.every_s - (time.monotonic() - began_s)))

    def _ask(self, verb: str, path: str, body: object, kind: str) -> str:
        """Send one request as clients of Go do, which try again where the server asks for it; return what went wrong.

        An API server that stops answers 503 with Retry-After to what reaches it late.
        """
        data = b"" if body is None else json.dumps(body).encode()
        headers: Headers = ((":method", verb), (":scheme", "https"), (":authority", "api"), (":path", path))
        headers += (("content-type", kind), ("content-length", str(len(data)))) if data else ()
        try:
            for _ in range(_TRIES):
                answer = _answered(self._server, self._context, headers, data)
                if answer.retry_after_s is None:
                    break
                time.sleep(answer.retry_after_s)
        except OSError as error:
            return f"{type(error).__name__}: {error}"
        return answer.problem


@dataclass(frozen=True, slots=True)
class _Answer:
    problem: str = ""
    retry_after_s: float | None = None  # the server has not begun with the request, and says so

    @classmethod
    def of(cls, headers: Headers) -> Self:
        fields = dict(headers)
        status, after = fields[":status"], fields.get("retry-after", "")
        return cls("" if status in ("200", "201") else status, float(after) if after.isdecimal() else None)


def _answered(server: tuple[str, int], context: ssl.SSLContext, headers: Headers, data: bytes) -> _Answer:
    """Ask on a connection of its own over HTTP/2, as all clients in Go do.

    A new connection of HTTP/1.1 would be closed without an answer by an API server that has just begun to stop
    (net/http looks for that after it has read a request).
    """
    plain = socket.create_connection(server, timeout=_TIMEOUT_S)
    with context.wrap_socket(plain, server_hostname=server[0]) as connection:
        http = Connection(is_client=True)
        stream = http.open_stream(headers, end_stream=not data)
        if data:
            http.send_data(stream, data)
            http.end_stream(stream)
        found = _Answer("it has no status")
        while True:
            connection.sendall(http.data_to_send())
            received = connection.recv(65536)
            if not received:
                return _Answer("closed without an answer")
            for event in http.receive_data(received):
                if isinstance(event, HeadersReceived) and not event.is_trailers:
                    found = _Answer.of(event.headers)
                if isinstance(event, HeadersReceived | DataReceived) and event.ended:
                    return found
                if isinstance(event, StreamReset):
                    return _Answer(f"reset: {event.reason}", 0.0 if event.is_unprocessed else None)
                if isinstance(event, ConnectionEnded):
                    return _Answer(event.reason)


def busy_share(over_s: float) -> float:
    """Return for which share of a time the processors of this machine were at work."""

    def ticks() -> tuple[int, int]:
        words = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        return sum(words) - words[3] - words[4], sum(words)

    busy, total = ticks()
    time.sleep(over_s)
    busy_after, total_after = ticks()
    return (busy_after - busy) / max(1, total_after - total)


def _longest_gap_s(asked: list[Asked]) -> float:
    answered = sorted(each.ended_s for each in asked if not each.problem)
    return max((later - earlier for earlier, later in pairwise(answered)), default=0.0)


def _connection(current: CurrentContext) -> tuple[ssl.SSLContext, tuple[str, int]]:
    def read(path: str) -> bytes:
        return Path(path).read_bytes()

    user = current.user or {}
    pair = [current.content(user, name, read) for name in ("client-certificate", "client-key")]
    server = urlsplit(current.server)
    context = new_client_context(current.ca, b"\n".join(pair))
    context.set_alpn_protocols(["h2"])
    return context, (server.hostname or "", server.port or 443)
