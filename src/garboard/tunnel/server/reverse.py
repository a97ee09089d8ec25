"""Connections from nodes to the control plane, as the server sees them: what is allowed, counted and recorded."""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from garboard.errors import InvalidValue
from garboard.tunnel.destinations import AllowList, Destination
from garboard.tunnel.dialer.dialer import EndpointSocket
from garboard.tunnel.dialer.dialling import DialFailed
from garboard.tunnel.dialer.protocol import Guard
from garboard.tunnel.dialer.states import EndpointConnection
from garboard.tunnel.log_text import AUDIT, one_word
from garboard.tunnel.metrics import Counter
from garboard.tunnel.server.shares import quota_share, share_of
from garboard.tunnel.wire.packets import STOPPING, DialRequest

# Denied connections cost an agent nothing, so their lines are bounded: for each stream, and for a whole cluster.
DENIALS_PER_STREAM: Final = 100
DENIALS_PER_CLUSTER: Final = 1000
BUDGET_S: Final = 1.0

TOO_MANY: Final = "too many connections of this agent or cluster"

audit = logging.getLogger(AUDIT)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReverseQuota:
    """How many connections of nodes there may be, and dials for them, of a stream and of a cluster."""

    open_per_stream: int = 2_000
    pending_per_stream: int = 200
    open: int = 10_000
    pending: int = 1_000


def guard_of(
    allowed: AllowList,
    is_stopping: Callable[[], bool] = lambda: False,
    is_over_quota: Callable[[], bool] = lambda: False,
) -> Guard:
    """Why an address must not be dialled; empty when the list allows it, the server goes on and there is room."""

    def why_not(address: str) -> str:
        if is_stopping():
            return f"dial tcp {address}: {STOPPING}"
        if is_over_quota():
            return f"dial tcp {address}: denied: {TOO_MANY}"
        try:
            destination = Destination.parse(address)
        except InvalidValue as error:
            return f"dial tcp: denied: {error.message}"
        return "" if allowed.allows(destination) else f"dial tcp {address}: denied: not an allowed destination"

    return why_not


class LineBudget:
    """So many lines within a second; the clock comes in."""

    def __init__(self, lines: int) -> None:
        self._lines = lines
        self._began_at = float("-inf")
        self._used = 0

    def takes(self, now: float) -> bool:
        """Whether one more may be written."""
        if now - self._began_at >= BUDGET_S:
            self._began_at, self._used = now, 0
        self._used += 1
        return self._used <= self._lines


@dataclass(frozen=True, slots=True)
class AgentPeer:
    """Who is at the other end of a stream; as text, the fields that every line about it has."""

    agent_id: str  # what it calls itself
    proven: str  # the subject of its certificate or its service account; empty where anyone may join
    address: str

    def __str__(self) -> str:
        proven = one_word(self.proven) if self.proven else "none"
        return f"agent={one_word(self.agent_id)} identity={proven} from={self.address or 'unknown'}"


class ReverseCounts:
    """What all agents of a cluster did in this direction."""

    def __init__(self, workers: int = 1) -> None:
        self.denial_lines = LineBudget(share_of(DENIALS_PER_CLUSTER, workers))
        self.denial_lines_per_stream = share_of(DENIALS_PER_STREAM, workers)
        self.connections = Counter("target", "verdict")
        self.denials = Counter("reason")
        self.bytes = Counter("target", "direction")
        self.quota = quota_share(ReverseQuota(), workers)
        self.open = 0
        self.pending = 0


class ReverseObserver:
    """Counts what one agent does on one stream, and writes a line when a connection begins and one when it is over."""

    def __init__(self, peer: AgentPeer, counts: ReverseCounts, allowed: AllowList) -> None:
        self._peer = str(peer)
        self._counts = counts
        self._allowed = allowed
        self._denial_lines = LineBudget(counts.denial_lines_per_stream)
        self._unwritten_denials = 0
        self._open = 0
        self._pending = 0

    def is_over_quota(self) -> bool:
        """Whether the agent may not have one connection more."""
        counts, quota = self._counts, self._counts.quota
        return (
            self._pending >= quota.pending_per_stream
            or self._open + self._pending >= quota.open_per_stream
            or counts.pending >= quota.pending
            or counts.open + counts.pending >= quota.open
        )

    def dialling(self, connection: EndpointConnection) -> None:
        self._pending += 1
        self._counts.pending += 1
        audit.info("reverse.dial %s", self._fields(connection.connect_id, connection.client, connection.address))

    def dialled(self, connection: EndpointConnection, seconds: float) -> None:
        self._dial_ended()
        self._open += 1
        self._counts.connections.of(self._target(connection.address), "allowed").value += 1
        self._counts.open += 1

    def dial_failed(self, connection: EndpointConnection, failed: DialFailed, seconds: float) -> None:
        self._dial_ended()
        self._counts.connections.of(self._target(connection.address), failed.kind).value += 1
        self._record(connection, failed.kind, seconds)

    def denied(self, request: DialRequest, error: str) -> None:
        """Counted without the address, which the agent chose: a hostile one could make the counts grow for ever."""
        self._counts.denials.of(_reason_of(error)).value += 1
        now = time.monotonic()
        if self._denial_lines.takes(now) and self._counts.denial_lines.takes(now):
            self._record(EndpointConnection(request.address, request.random, 0, request.client), "denied", 0.0)
            return
        if not self._unwritten_denials:
            asyncio.get_running_loop().call_later(BUDGET_S, self._sum_up)
        self._unwritten_denials += 1

    def dial_stopped(self, connection: EndpointConnection, seconds: float) -> None:
        """The client, or the agent itself, left before there was an answer."""
        self._dial_ended()
        self._counts.connections.of(self._target(connection.address), "abandoned").value += 1
        self._record(connection, "abandoned", seconds)

    def closed(self, endpoint: EndpointSocket) -> None:
        sent, received = endpoint.bytes_written, endpoint.bytes_read
        self._open -= 1
        self._counts.open -= 1
        target = self._target(endpoint.connection.address)
        self._counts.bytes.of(target, "to_target").value += sent
        self._counts.bytes.of(target, "from_target").value += received
        self._record(endpoint.connection, "allowed", time.monotonic() - endpoint.opened_at, sent, received)

    def stalled(self, connection: EndpointConnection) -> None:
        self._counts.connections.of(self._target(connection.address), "stalled").value += 1

    def _target(self, address: str) -> str:
        """The entry of the allow-list: an agent may write one destination in many ways, and a network has many."""
        return self._allowed.entry_for(Destination.parse(address))

    def _record(
        self, connection: EndpointConnection, verdict: str, seconds: float, sent: int = 0, received: int = 0
    ) -> None:
        audit.info(
            "reverse.connection %s verdict=%s bytes_sent=%d bytes_received=%d duration_s=%.3f",
            self._fields(connection.connect_id, connection.client, connection.address),
            verdict, sent, received, seconds,
        )  # fmt: skip

    def _fields(self, connect_id: int, client: str, address: str) -> str:
        told = one_word(client) if client else "unknown"
        return f"id={connect_id} {self._peer} client={told} target={one_word(address)}"

    def _dial_ended(self) -> None:
        self._pending -= 1
        self._counts.pending -= 1

    def _sum_up(self) -> None:
        audit.warning("reverse.denials %s more=%d", self._peer, self._unwritten_denials)
        self._unwritten_denials = 0


def _reason_of(error: str) -> str:
    reasons = {STOPPING: "stopping", TOO_MANY: "quota", "not an allowed destination": "not_allowed"}
    return next((reason for words, reason in reasons.items() if error.endswith(words)), "malformed")
