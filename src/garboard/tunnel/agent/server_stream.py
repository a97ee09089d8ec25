"""The Connect stream to one proxy server."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from typing import Final

from garboard.rpc import ClientCall, Status, StatusCode
from garboard.rpc.aio import AioLink
from garboard.tunnel.agent.servers import ServerBackend
from garboard.tunnel.channel import Channel
from garboard.tunnel.dialer.dialer import Dialer, EndpointSocket
from garboard.tunnel.dialer.dialling import DialFailed
from garboard.tunnel.dialer.resolving import Resolver
from garboard.tunnel.dialer.states import EndpointConnection
from garboard.tunnel.frontend.tunnels import Tunnels
from garboard.tunnel.log_text import one_word, quoted
from garboard.tunnel.metrics import AGENT_BUCKETS, Counter, Histogram, StreamErrors
from garboard.tunnel.wire import packets
from garboard.tunnel.wire.capabilities import agreed
from garboard.tunnel.wire.flow import StallWatch
from garboard.tunnel.wire.packets import DialRequest, encode_packet

SERVERS_REQ: Final = encode_packet(packets.ServersRequest())

log = logging.getLogger("garboard.tunnel")


class AgentCounts:
    """What the streams of an agent count together; it observes their dialers (`DialerObserver`)."""

    def __init__(self) -> None:
        self.packets = Counter("segment", "packet_type")
        self.errors = StreamErrors()
        self.dial_seconds = Histogram(AGENT_BUCKETS)
        self.dial_failures = Counter("reason")
        self.connection_failures = Counter("direction")
        self.stalled_endpoints = 0

    def dialling(self, connection: EndpointConnection) -> None:
        pass

    def dialled(self, connection: EndpointConnection, seconds: float) -> None:
        self.dial_seconds.observe(seconds)

    def dial_failed(self, connection: EndpointConnection, failed: DialFailed, seconds: float) -> None:
        # The stock agent knows these two reasons only.
        self.dial_failures.of("timeout" if failed.kind == "timed_out" else "unknown").value += 1
        log.info("endpoint.dial.failed address=%s error=%s", one_word(connection.address), quoted(str(failed)))

    def dial_stopped(self, connection: EndpointConnection, seconds: float) -> None:
        pass

    def denied(self, request: DialRequest, error: str) -> None:
        log.info("endpoint.dial.denied address=%s error=%s", one_word(request.address), quoted(error))

    def closed(self, endpoint: EndpointSocket) -> None:
        pass

    def stalled(self, connection: EndpointConnection) -> None:
        self.stalled_endpoints += 1


class ServerStream(Channel):
    """Listens to the call (`CallListener`); dials for the server, and has it dial for the node if it takes that."""

    def __init__(
        self,
        link: AioLink,
        call: ClientCall,
        address: tuple[str, int],
        *,
        ids: Iterator[int],
        counts: AgentCounts,
        watch: StallWatch,
        resolver: Resolver,
        on_end: Callable[["ServerStream", str], None],
        on_told: Callable[["ServerStream", packets.ServersResponse], None],
    ) -> None:
        super().__init__(link, call, counts.packets, segments=("to_agent", "from_agent"))
        self._errors = counts.errors
        self._connection_failures = counts.connection_failures
        self.begun: asyncio.Future[None] = link.loop.create_future()
        self.dialer = Dialer(self, ids, counts, watch, resolver)
        self.address = address
        self.began_at = time.monotonic()
        self._was_told_early = False  # that the server stops, together with its answer to the call
        self._on_end = on_end
        self._on_told = on_told
        call.listener = self

    @property
    def endpoints(self) -> int:
        return len(self.dialer.endpoints) if self.dialer is not None else 0

    def offer_to(self, tunnels: Tunnels, server_id: str) -> None:
        """Let the node's connections go through this server, if it takes them."""
        terms = self.sender.terms
        if terms.takes_dials:
            self.tunnels, self.backend = tunnels, ServerBackend(server_id, terms.refused)
            self.backend.takes_cuts = True
            tunnels.join(self.backend, self)
            self.backend.is_draining = self._was_told_early

    def ask_for_servers(self) -> None:
        """Have the server say how many servers there are and who of its workers runs, if it can."""
        if self.sender.terms.tells_servers:
            self.send(SERVERS_REQ)
            self.link.poke()

    def servers_received(self, packet: packets.ServersRequest | packets.ServersResponse) -> None:
        if isinstance(packet, packets.ServersResponse):
            self._on_told(self, packet)

    def _to_end(self, packet: packets.Packet) -> None:
        if self.backend is None and isinstance(packet, packets.Drain):
            self._was_told_early = True
        else:
            super()._to_end(packet)

    # CallListener.

    def started(self) -> None:
        if not self.begun.done():
            self.sender.agree(agreed(self.call.metadata))
            self.begun.set_result(None)

    def peer_ended(self) -> None:
        pass  # a server ends a call with its status

    def ended(self, status: Status) -> None:
        if not status.is_ok:
            self._connection_failures.of("from_server").value += 1
        self.count_errors(self._errors, status)
        self.close()
        if not self.begun.done():
            self.begun.set_result(None)
        self._on_end(self, status.message or status.code.name)

    def refuse(self, reason: str) -> None:
        status = Status(StatusCode.INTERNAL, f"the server sent what it must not: {reason}")
        self.call.abort(status)
        self.ended(status)
