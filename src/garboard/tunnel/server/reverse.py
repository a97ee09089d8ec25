"""Connections from nodes to the control plane, as the server sees them: what is allowed, counted and recorded."""

import asyncio
import logging
import time
from typing import Final

from garboard.errors import InvalidValue
from garboard.tunnel.destinations import AllowList, Destination
from garboard.tunnel.dialling import DialFailed
from garboard.tunnel.exchange import Guard
from garboard.tunnel.exits import Endpoint
from garboard.tunnel.metrics import Counter

# Denied connections cost an agent nothing, so their lines are bounded: for each stream, and for a whole cluster.
DENIALS_PER_STREAM: Final = 100
DENIALS_PER_CLUSTER: Final = 1000
BUDGET_S: Final = 1.0

audit = logging.getLogger("garboard.tunnel.audit")


def guard_of(allowed: AllowList) -> Guard:
    """Why an address must not be dialled; empty when the list allows it."""

    def why_not(address: str) -> str:
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


class ReverseCounts:
    """What all agents of a cluster did in this direction."""

    def __init__(self) -> None:
        self.denial_lines = LineBudget(DENIALS_PER_CLUSTER)
        self.connections = Counter("target", "verdict")
        self.denials = Counter("reason")
        self.bytes = Counter("target", "direction")
        self.open = 0


class ReverseObserver:
    """Counts what one agent does on one stream, and writes one line for each of its connections once it is over."""

    def __init__(self, agent_id: str, counts: ReverseCounts, allowed: AllowList) -> None:
        self._agent_id = _one_word(agent_id)
        self._counts = counts
        self._allowed = allowed
        self._denial_lines = LineBudget(DENIALS_PER_STREAM)
        self._unwritten_denials = 0

    def dialled(self, address: str, seconds: float) -> None:
        self._counts.connections.of(self._target(address), "allowed").value += 1
        self._counts.open += 1

    def dial_failed(self, address: str, failed: DialFailed, seconds: float) -> None:
        self._counts.connections.of(self._target(address), failed.kind).value += 1
        self._record(address, failed.kind, 0, 0, seconds)

    def denied(self, address: str, error: str) -> None:
        """Counted without the address, which the agent chose: a hostile one could make the counts grow for ever."""
        self._counts.denials.of("not_allowed" if "not an allowed" in error else "malformed").value += 1
        now = time.monotonic()
        if self._denial_lines.takes(now) and self._counts.denial_lines.takes(now):
            self._record(address, "denied", 0, 0, 0.0)
            return
        if not self._unwritten_denials:
            asyncio.get_running_loop().call_later(BUDGET_S, self._sum_up)
        self._unwritten_denials += 1

    def dial_stopped(self, address: str, seconds: float) -> None:
        """The client, or the agent itself, left before there was an answer."""
        self._counts.connections.of(self._target(address), "abandoned").value += 1
        self._record(address, "abandoned", 0, 0, seconds)

    def closed(self, endpoint: Endpoint) -> None:
        address = endpoint.connection.address
        sent, received = endpoint.bytes_written, endpoint.bytes_read
        self._counts.open -= 1
        target = self._target(address)
        self._counts.bytes.of(target, "to_target").value += sent
        self._counts.bytes.of(target, "from_target").value += received
        self._record(address, "allowed", sent, received, time.monotonic() - endpoint.opened_at)

    def stalled(self, address: str) -> None:
        self._counts.connections.of(self._target(address), "stalled").value += 1

    def _target(self, address: str) -> str:
        """The entry of the allow-list: an agent may write one destination in many ways, and a network has many."""
        return self._allowed.entry_for(Destination.parse(address))

    def _record(self, address: str, verdict: str, sent: int, received: int, seconds: float) -> None:
        audit.info(
            "reverse.connection agent=%s target=%s verdict=%s bytes_sent=%d bytes_received=%d duration_s=%.3f",
            self._agent_id, _one_word(address), verdict, sent, received, seconds,
        )  # fmt: skip

    def _sum_up(self) -> None:
        audit.warning("reverse.denials agent=%s more=%d", self._agent_id, self._unwritten_denials)
        self._unwritten_denials = 0


def _one_word(text: str) -> str:
    """What an agent chose, so that it stays one word of its line and cannot pass for another."""
    return (text if text.isprintable() and not set(text) & set(" ='\"") else repr(text).replace(" ", "\\x20"))[:300]
