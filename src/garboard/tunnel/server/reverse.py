"""Connections from nodes to the control plane, as the server sees them: what is allowed, counted and recorded."""

import logging
import time
from typing import Final

from garboard.errors import InvalidValue
from garboard.tunnel.destinations import AllowList, Destination
from garboard.tunnel.dialling import DialFailed
from garboard.tunnel.exchange import Guard
from garboard.tunnel.exits import Endpoint
from garboard.tunnel.metrics import Counter

DENIALS_LOGGED_EVERY_S: Final = 1.0

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


class ReverseCounts:
    """What all agents did in this direction."""

    def __init__(self) -> None:
        self.connections = Counter("target", "verdict")
        self.denials = Counter("reason")
        self.bytes = Counter("target", "direction")
        self.open = 0


class ReverseObserver:
    """Counts what one agent does, and writes one line for each of its connections once it is over."""

    def __init__(self, agent_id: str, counts: ReverseCounts) -> None:
        self._agent_id = agent_id
        self._counts = counts
        self._unlogged_denials = 0
        self._denial_logged_at = float("-inf")

    def dialled(self, address: str, seconds: float) -> None:
        self._counts.connections.of(address, "allowed").value += 1
        self._counts.open += 1

    def dial_failed(self, address: str, failed: DialFailed, seconds: float) -> None:
        self._counts.connections.of(address, failed.kind).value += 1
        self._record(address, failed.kind, 0, 0, seconds)

    def denied(self, address: str, error: str) -> None:
        """Counted without the address, which the agent chose: a hostile one could make the counts grow for ever."""
        self._counts.denials.of("not_allowed" if "not an allowed" in error else "malformed").value += 1
        now = time.monotonic()
        if now - self._denial_logged_at < DENIALS_LOGGED_EVERY_S:
            self._unlogged_denials += 1
            return
        self._denial_logged_at = now
        if self._unlogged_denials:
            audit.warning("reverse.denials agent=%s more=%d", self._agent_id, self._unlogged_denials)
            self._unlogged_denials = 0
        self._record(address, "denied", 0, 0, 0.0)

    def closed(self, endpoint: Endpoint) -> None:
        address = endpoint.connection.address
        sent, received = endpoint.bytes_written, endpoint.bytes_read
        self._counts.open -= 1
        self._counts.bytes.of(address, "to_target").value += sent
        self._counts.bytes.of(address, "from_target").value += received
        self._record(address, "allowed", sent, received, time.monotonic() - endpoint.opened_at)

    def stalled(self, address: str) -> None:
        self._counts.connections.of(address, "stalled").value += 1

    def _record(self, address: str, verdict: str, sent: int, received: int, seconds: float) -> None:
        # An address is any text of an agent: as a repr it stays on its line.
        target = address if address.isprintable() and " " not in address else repr(address)
        audit.info(
            "reverse.connection agent=%s target=%s verdict=%s bytes_sent=%d bytes_received=%d duration_s=%.3f",
            self._agent_id, target[:300], verdict, sent, received, seconds,
        )  # fmt: skip
