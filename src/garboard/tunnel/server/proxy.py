"""The tunnels of one cluster at the server, with their metrics, and the counts of connections from its nodes."""

import itertools
import time
from collections.abc import Callable, Iterator
from typing import Final

from garboard.tunnel.destinations import AllowList
from garboard.tunnel.dialer.resolving import Resolver
from garboard.tunnel.frontend.protocol import DialCounts, TunnelQuota, TunnelTimeouts
from garboard.tunnel.frontend.states import Backend
from garboard.tunnel.frontend.tunnels import BackendStream, Tunnels
from garboard.tunnel.metrics import (
    LATENCY_BUCKETS,
    Counter,
    Gauge,
    Histogram,
    Metric,
    Metrics,
    StreamErrors,
    Total,
    Waits,
)
from garboard.tunnel.server.reverse import ReverseCounts
from garboard.tunnel.server.routing import Backends
from garboard.tunnel.server.shares import quota_share
from garboard.tunnel.wire.flow import StallWatch
from garboard.tunnel.wire.sockets import SocketEnd

PREFIX: Final = "konnectivity_network_proxy_server_"


class Proxy(Tunnels):
    """The tunnels of API servers to one cluster, and what its agents may reach through the server."""

    def __init__(
        self,
        backends: Backends,
        *,
        timeouts: TunnelTimeouts,
        watch: StallWatch,
        allowed: AllowList,
        workers: int = 1,
        on_agents: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(backends, timeouts=timeouts, watch=watch, quota=quota_share(TunnelQuota(), workers))
        self._on_agents = on_agents  # called when one has come or gone
        self.backends = backends
        self.allowed = allowed
        self.is_draining = False
        self.reverse = ReverseCounts(workers)
        self.resolver = Resolver()
        self.reverse_ids: Iterator[int] = itertools.count(1, 2)  # agents count theirs in even numbers
        self.packets = Counter("segment", "packet_type")
        self.errors = StreamErrors()
        self.http_connections = 0
        # HTTP clients that have not asked for anything, and until when they may.
        self.unread: dict[SocketEnd, float] = {}
        self.write_seconds = Waits(LATENCY_BUCKETS, self._writes)
        self.metrics = Metrics(PREFIX, self._families())

    def join(self, backend: Backend, stream: BackendStream) -> None:
        super().join(backend, stream)
        if self.is_draining:
            stream.drain()
        self._on_agents()

    def leave(self, backend: Backend) -> None:
        super().leave(backend)
        self._on_agents()

    @property
    def open_connections(self) -> int:
        """Both ways."""
        return len(self.frontends) + self.reverse.open

    def drain(self) -> None:
        """Take no more connections of nodes, and have agents choose other servers for them."""
        self.is_draining = True
        for stream in self.streams.values():
            stream.drain()

    def expire(self) -> None:
        super().expire()
        now = time.monotonic()
        for frontend in [each for each, until in self.unread.items() if until <= now]:
            frontend.cut()

    def disconnect_all(self) -> int:
        """The server stops: how many connections it cut is returned."""
        cut = self.open_connections
        for frontend in list(self.frontends.values()):
            frontend.disconnect()
        for stream in self.streams.values():
            stream.close_endpoints()
        return cut

    def _families(self) -> dict[str, tuple[str, Metric]]:
        dial_seconds = Histogram(LATENCY_BUCKETS)
        self.protocol.counts.dial_seconds = dial_seconds.observe
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
            "pending_backend_dials": ("Dials without an answer.", Gauge(lambda: self.protocol.pending_dials)),
            "established_connections": (
                "Open connections.",
                Gauge(lambda: sum(len(backend.open) for backend in self.streams)),
            ),
            "dial_failure_count": ("Dials that failed, by reason.", _Failures(self.protocol.counts)),
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
            "to_client": sum(frontend.outflow.queued_bytes for frontend in self.frontends.values()),
            "to_agent": sum(stream.queued_bytes for stream in self.streams.values()),
        }

    def _full(self) -> dict[str, float]:
        """Of agents' streams, one for each reader that they wait for; of frontends, those that wait for an agent."""
        return {
            "Connect": sum(frontend.outflow.holds_back for frontend in self.frontends.values()),
            "Proxy": sum(frontend.is_held_back for frontend in self.frontends.values()),
        }

    def _writes(self) -> int:
        return self.past_writes + sum(frontend.writes for frontend in self.frontends.values())

    def _streams(self) -> dict[str, float]:
        return {"Connect": len(self.streams), "Proxy": len(self.frontends) - self.http_connections}


class _Failures:
    """Dial failures by reason, as the protocol counted them."""

    def __init__(self, counts: DialCounts) -> None:
        self._counts = counts

    def lines(self, name: str) -> list[str]:
        rows = [f'{name}{{reason="{reason}"}} {count}' for reason, count in sorted(self._counts.dial_failures.items())]
        return [f"# TYPE {name} counter", *rows]
