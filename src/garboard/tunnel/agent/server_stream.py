"""The Connect stream to one proxy server."""

import asyncio
import logging
from collections.abc import Callable, Iterator

from garboard.rpc import ClientCall, Status, StatusCode
from garboard.rpc.aio import AioLink
from garboard.tunnel.agent.servers import ServerBackend
from garboard.tunnel.capabilities import agreed
from garboard.tunnel.channel import Channel
from garboard.tunnel.dialling import DialFailed
from garboard.tunnel.entry import Entry
from garboard.tunnel.exchange import DRAIN
from garboard.tunnel.exits import Endpoint, Exit
from garboard.tunnel.flow import StallWatch
from garboard.tunnel.metrics import AGENT_BUCKETS, Counter, Histogram
from garboard.tunnel.stream_errors import StreamErrors

log = logging.getLogger("garboard.tunnel")


class AgentCounts:
    """What the streams of an agent count together; it watches their exits (`ExitObserver`)."""

    def __init__(self) -> None:
        self.packets = Counter("segment", "packet_type")
        self.errors = StreamErrors()
        self.dial_seconds = Histogram(AGENT_BUCKETS)
        self.dial_failures = Counter("reason")
        self.connection_failures = Counter("direction")
        self.stalled_endpoints = 0

    def dialled(self, address: str, seconds: float) -> None:
        self.dial_seconds.observe(seconds)

    def dial_failed(self, address: str, failed: DialFailed, seconds: float) -> None:
        # The stock agent knows these two reasons only.
        self.dial_failures.of("timeout" if failed.kind == "timed_out" else "unknown").value += 1
        log.info("endpoint.dial.failed address=%s error=%s", address, failed)

    def dial_stopped(self, address: str, seconds: float) -> None:
        pass

    def denied(self, address: str, error: str) -> None:
        log.info("endpoint.dial.denied address=%r error=%s", address, error)

    def closed(self, endpoint: Endpoint) -> None:
        pass

    def stalled(self, address: str) -> None:
        self.stalled_endpoints += 1


class ServerStream(Channel):
    """Listens to the call (`CallListener`); dials for the server, and has it dial for the node if it takes that."""

    def __init__(
        self,
        link: AioLink,
        call: ClientCall,
        *,
        ids: Iterator[int],
        counts: AgentCounts,
        watch: StallWatch,
        on_end: Callable[["ServerStream", str], None],
    ) -> None:
        super().__init__(link, call, counts.packets, segments=("to_agent", "from_agent"))
        self._errors = counts.errors
        self._connection_failures = counts.connection_failures
        self.begun: asyncio.Future[None] = link.loop.create_future()
        self.exit = Exit(self, ids, counts, watch)
        self._on_end = on_end
        call.listener = self

    @property
    def endpoints(self) -> int:
        return len(self.exit.endpoints) if self.exit is not None else 0

    def offer_to(self, entry: Entry, server_id: str) -> None:
        """Let the node's connections go through this server, if it takes them."""
        terms = self.sender.terms
        if terms.takes_dials:
            self.entry, self.backend = entry, ServerBackend(server_id, terms.refused)
            entry.join(self.backend, self)

    def drain(self) -> None:
        """Tell the server to prefer others."""
        self.send(DRAIN)

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
