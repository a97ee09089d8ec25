"""The server's registers, with its numbers: an entry for API servers, and what agents may reach through it."""

import itertools
import time
from collections.abc import Callable, Iterator
from typing import Final

from garboard.tunnel.destinations import AllowList
from garboard.tunnel.entry import Entry
from garboard.tunnel.flow import StallWatch
from garboard.tunnel.metrics import LATENCY_BUCKETS, Counter, Gauge, Histogram, Metric, Metrics, Total, Waits
from garboard.tunnel.server.reverse import ReverseCounts
from garboard.tunnel.server.routing import Backends
from garboard.tunnel.sockets import SocketEnd
from garboard.tunnel.stream_errors import StreamErrors
from garboard.tunnel.switchboard import Times

PREFIX: Final = "konnectivity_network_proxy_server_"


class Proxy(Entry):
    """Joins the protocol with the sockets, for one cluster."""

    def __init__(self, backends: Backends, *, times: Times, watch: StallWatch, allowed: AllowList) -> None:
        super().__init__(backends, times=times, watch=watch)
        self.backends = backends
        self.allowed = allowed
        self.reverse = ReverseCounts()
        self.reverse_ids: Iterator[int] = itertools.count(1, 2)  # agents count theirs in even numbers
        self.packets = Counter("segment", "packet_type")
        self.errors = StreamErrors()
        self.http_connections = 0
        # HTTP clients that have not asked for anything, and until when they may.
        self.unread: dict[SocketEnd, float] = {}
        self.write_seconds = Waits(LATENCY_BUCKETS, self._writes)
        self.metrics = Metrics(PREFIX, self._families())

    @property
    def open_connections(self) -> int:
        """Both ways."""
        return len(self.fronts) + self.reverse.open

    def expire(self) -> None:
        super().expire()
        now = time.monotonic()
        for front in [each for each, until in self.unread.items() if until <= now]:
            front.cut()

    def disconnect_all(self) -> int:
        """The server stops: how many connections it cut is returned."""
        cut = self.open_connections
        for front in list(self.fronts.values()):
            front.disconnect()
        for stream in self.streams.values():
            stream.close_exits()
        return cut

    def _families(self) -> dict[str, tuple[str, Metric]]:
        dial_seconds = Histogram(LATENCY_BUCKETS)
        self.board.counts.dial_seconds = dial_seconds.observe
        backends, reverse = self.backends, self.reverse
        return {
            "dial_duration_seconds": ("How long agents took to answer dials.", dial_seconds),
            "frontend_write_duration_seconds": ("How long data waited for API servers.", self.write_seconds),
            "grpc_connections": ("gRPC streams by method.", Gauge(self._streams, "service_method")),
            "http_connections": ("HTTP-CONNECT clients.", Gauge(lambda: self.http_connections)),
            "ready_backend_connections": (
                "Agents; ready_backends tells more.",
                Gauge(lambda: backends.count(backends.strategies[0])),
            ),
            "ready_backends": (
                "Agents, as each strategy can choose them.",
                Gauge(lambda: {str(each): backends.count(each) for each in backends.strategies}, "proxy_strategy"),
            ),
            "pending_backend_dials": ("Dials without an answer.", Gauge(lambda: self.board.pending_dials)),
            "established_connections": (
                "Open connections.",
                Gauge(lambda: sum(len(backend.open) for backend in self.streams)),
            ),
            "dial_failure_count": ("Dials that failed, by reason.", _Failures(lambda: self.board.counts.dial_failures)),
            "stream_packets_total": ("Packets by direction and type.", self.packets),
            "stream_errors_total": ("Streams that failed, by direction and code.", self.errors.counter),
            "full_receive_channels": ("Streams that wait for a slow reader.", Gauge(self._full, "service_method")),
            "stalled_connections_total": ("Connections closed since they took no data.", Total(lambda: self.stalled)),
            "queued_bytes": ("Bytes that wait, by where.", Gauge(self._queues, "queue")),
            "reverse_connections": ("Open connections from nodes.", Gauge(lambda: reverse.open)),
            "reverse_connections_total": ("Connections from nodes, by target and verdict.", reverse.connections),
            "reverse_denials_total": ("Connections from nodes that were denied, by reason.", reverse.denials),
            "reverse_bytes_total": ("Bytes of closed connections from nodes.", reverse.bytes),
        }

    def _queues(self) -> dict[str, float]:
        return {
            "to_client": sum(front.outflow.queued_bytes for front in self.fronts.values()),
            "to_agent": sum(stream.queued_bytes for stream in self.streams.values()),
        }

    def _full(self) -> dict[str, float]:
        """Of agents' streams, one for each reader that they wait for; of front ends, those that wait for an agent."""
        return {
            "Connect": sum(front.outflow.holds_back for front in self.fronts.values()),
            "Proxy": sum(front.is_held_back for front in self.fronts.values()),
        }

    def _writes(self) -> int:
        return self.past_writes + sum(front.writes for front in self.fronts.values())

    def _streams(self) -> dict[str, float]:
        return {"Connect": len(self.streams), "Proxy": len(self.fronts) - self.http_connections}


class _Failures:
    """Dial failures by reason, as the switchboard counted them."""

    def __init__(self, read: Callable[[], dict[str, int]]) -> None:
        self._read = read

    def lines(self, name: str) -> list[str]:
        rows = [f'{name}{{reason="{reason}"}} {count}' for reason, count in sorted(self._read().items())]
        return [f"# TYPE {name} counter", *rows]
