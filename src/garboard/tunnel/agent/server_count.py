"""How many servers an agent should be connected to: what the servers say, what their leases say, or the larger."""

import asyncio
import logging
import time
from collections.abc import Callable
from enum import StrEnum

from garboard.errors import GarboardError
from garboard.tunnel.leases import COUNT_EVERY_S, LeaseStore, valid_count
from garboard.tunnel.log_text import quoted
from garboard.tunnel.metrics import AGENT_BUCKETS, Counter, Histograms, Metric

log = logging.getLogger("garboard.tunnel")


class CountSource(StrEnum):
    """`default` believes the leases where they are counted and the servers where they are not."""

    DEFAULT = "default"
    MAX = "max"


class ServerCount:
    """The number, in step with what was heard last. Leases that cannot be read leave it as it was."""

    def __init__(self, source: CountSource = CountSource.DEFAULT, *, counts_leases: bool = False) -> None:
        self._source = source
        self._counts_leases = counts_leases
        self._told = 1
        self._leased: int | None = None

    @property
    def wanted(self) -> int:
        if not self._counts_leases:
            return self._told
        # Without an answer yet there is no reason to wait for one: the API server may be behind the tunnel.
        leased = self._leased if self._leased is not None else self._told
        return max(self._told, leased, 1) if self._source is CountSource.MAX else max(leased, 1)

    def server_said(self, text: str) -> None:
        """The header of a server that was not known yet."""
        self._told = int(text) if text.isascii() and text.isdigit() and int(text) else 1

    def leases_said(self, count: int) -> None:
        self._leased = count


class LeaseCounter:
    """Asks for the leases again and again, and calls `on_change` when the number is another."""

    def __init__(self, store: LeaseStore, count: ServerCount, on_change: Callable[[], None]) -> None:
        self._store = store
        self._count = count
        self._on_change = on_change
        self._lists = Counter("http_response_code", "reason")
        self._seconds = Histograms("http_response_code", AGENT_BUCKETS)

    async def run(self) -> None:
        """For ever."""
        while True:
            before = self._count.wanted
            await asyncio.to_thread(self.look)
            if self._count.wanted != before:
                log.info("servers.counted by=leases count=%d", self._count.wanted)
                self._on_change()
            await asyncio.sleep(COUNT_EVERY_S)

    def look(self) -> None:
        """Count once; a failure changes nothing."""
        began = time.monotonic()
        code, reason = "200", ""
        try:
            self._count.leases_said(valid_count(self._store.all(), time.time()))
        except GarboardError as error:
            code, reason = str(getattr(error, "http_status", 0)), error.error_class
            log.warning("leases.not-counted reason=%s", quoted(error.message))
        self._lists.of(code, reason).value += 1
        self._seconds.of(code).observe(time.monotonic() - began)

    def families(self) -> dict[str, tuple[str, Metric]]:
        return {
            "lease_lists_total": ("Lists of the servers' leases, by outcome.", self._lists),
            "lease_watches_total": (
                "Watches of leases: none, they are listed.",
                Counter("http_response_code", "reason"),
            ),
            "lease_list_latency_seconds": ("How long listing leases took.", self._seconds),
        }
