"""The server's registers: which stream belongs to which agent, which socket to which tunnel; it carries effects out."""

import asyncio
import time
from collections.abc import Callable
from typing import Final, Protocol

from garboard.tunnel import packets
from garboard.tunnel.flow import NOBODY, FairSender, Outflow, Patience, Source
from garboard.tunnel.metrics import LATENCY_BUCKETS, Counter, Gauge, Histogram, Metric, Metrics
from garboard.tunnel.packets import counted_type_of
from garboard.tunnel.server.routing import Backends
from garboard.tunnel.server.switchboard import DataToFront, Effect, Switchboard, Times, ToAgent, ToFront
from garboard.tunnel.server.tunnels import Backend, Tunnel

TICK_S: Final = 0.25
PREFIX: Final = "konnectivity_network_proxy_server_"


class Front(Protocol):
    """One client's connection."""

    outflow: Outflow

    def deliver_data(self, message: bytes, source: Source) -> None:
        """A DATA packet of the agent; the front end releases it."""

    def tell(self, packet: packets.Packet) -> None:
        """DIAL_RSP or CLOSE_RSP."""

    def disconnect(self) -> None:
        """The server stops."""


class Proxy:
    """Joins the protocol with the sockets."""

    def __init__(self, backends: Backends, *, times: Times, patience: Patience) -> None:
        self.board = Switchboard(backends, clock=time.monotonic, times=times)
        self.patience = patience
        self.senders: dict[Backend, FairSender] = {}
        self.fronts: dict[Tunnel, Front] = {}
        self.packets = Counter("segment", "packet_type")
        self.stalled = Counter()
        self.http_connections = 0
        self.metrics = Metrics(PREFIX, self._families())
        self._data_to_agent = self.packets.of("to_agent", "DATA")
        self._data_from_agent = self.packets.of("from_agent", "DATA")

    def perform(self, effects: list[Effect], message: bytes = b"", source: Source = NOBODY) -> None:
        """Carry the effects of a message out; its bytes are released when they have gone on."""
        has_gone_on = False
        for effect in effects:
            if type(effect) is DataToFront:
                has_gone_on = True
                self._data_from_agent.value += 1
                self.fronts[effect.tunnel].deliver_data(message, source)
            elif type(effect) is ToAgent:
                is_message = effect.message is message
                has_gone_on = has_gone_on or is_message
                self._to_agent(effect, source if is_message else NOBODY)
            elif type(effect) is ToFront and (front := self.fronts.get(effect.tunnel)) is not None:
                front.tell(effect.packet)
        if not has_gone_on:
            source.release(len(message))

    def _to_agent(self, effect: ToAgent, source: Source) -> None:
        sender = self.senders.get(effect.backend)
        if sender is None:
            source.release(len(effect.message))
            return
        if effect.tunnel is not None and source is not NOBODY:
            self._data_to_agent.value += 1
        else:
            self.packets.of("to_agent", counted_type_of(effect.message)).value += 1
        sender.send(effect.tunnel, (effect.message,), len(effect.message), source)

    def send_payload(self, tunnel: Tunnel, chunk: memoryview, source: Source) -> None:
        """Raw bytes of a front end that knows no packets."""
        backend = self.board.carrier_of(tunnel)
        sender = self.senders.get(backend) if backend is not None else None
        if sender is None:
            source.release(len(chunk))
            return
        self._data_to_agent.value += 1
        header = packets.data_header(tunnel.connect_id, len(chunk))
        sender.send(tunnel, (header, chunk), len(chunk), source)

    def front_gone(self, tunnel: Tunnel) -> None:
        self.perform(self.board.front_gone(tunnel))
        self.fronts.pop(tunnel, None)

    async def keep_time(self) -> None:
        """End what waits too long, for ever."""
        while True:
            await asyncio.sleep(TICK_S)
            self.perform(self.board.expire())
            now = time.monotonic()
            for tunnel, front in list(self.fronts.items()):
                if front.outflow.is_stalled(now):
                    self.stalled.of().value += 1
                    front.outflow.clear()
                    self.perform(self.board.front_stalled(tunnel))

    def _families(self) -> dict[str, tuple[str, Metric]]:
        dial_seconds = Histogram(LATENCY_BUCKETS)
        self.board.counts.dial_seconds = dial_seconds.observe
        backends = self.board.backends
        return {
            "dial_duration_seconds": ("How long agents took to answer dials.", dial_seconds),
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
                Gauge(lambda: sum(len(backend.open) for backend in self.senders)),
            ),
            "dial_failure_count": ("Dials that failed, by reason.", _Failures(lambda: self.board.counts.dial_failures)),
            "stream_packets_total": ("Packets by direction and type.", self.packets),
            "stalled_connections_total": ("Connections closed since they took no data.", self.stalled),
        }

    def _streams(self) -> dict[str, float]:
        return {"Connect": len(self.senders), "Proxy": len(self.fronts) - self.http_connections}


class _Failures:
    """Dial failures by reason, as the switchboard counted them."""

    def __init__(self, read: Callable[[], dict[str, int]]) -> None:
        self._read = read

    def lines(self, name: str) -> list[str]:
        rows = [f'{name}{{reason="{reason}"}} {count}' for reason, count in sorted(self._read().items())]
        return [f"# TYPE {name} counter", *rows]
