"""Keeps this server's lease alive and clears away those of servers that are gone."""

import asyncio
import logging
import random
import time
from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

from garboard.errors import GarboardError
from garboard.tunnel.leases import RENEW_AGAIN_S, RENEW_EVERY_S, RENEW_JITTER, LeaseStore, expired, own_lease
from garboard.tunnel.log_text import one_word, quoted
from garboard.tunnel.metrics import DEFAULT_BUCKETS, Counter, Histograms, Metric

FAREWELL_TIMEOUT_S: Final = 5.0
CULLED: Final = "Expired leases that were deleted."

log = logging.getLogger("garboard.tunnel")
ResultT = TypeVar("ResultT")


class LeaseController:
    """Renews and clears until it is cancelled; then `release` deletes the server's own lease."""

    def __init__(self, store: LeaseStore, server_id: str, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._server_id = server_id
        self._clock = clock
        self._culled = Counter()
        self._culled.of()
        self._lists, self._deletes = Counter("http_status_code", "reason"), Counter("http_status_code", "reason")
        self._list_seconds = Histograms("http_status_code", DEFAULT_BUCKETS)
        self._delete_seconds = Histograms("http_status_code", DEFAULT_BUCKETS)

    async def run(self) -> None:
        """For ever; an API server that does not answer is asked again in time."""
        while True:
            is_renewed = await asyncio.to_thread(self.tend)
            pause_s = RENEW_EVERY_S if is_renewed else RENEW_AGAIN_S
            await asyncio.sleep(pause_s * (1 + RENEW_JITTER * random.random()))

    def tend(self) -> bool:
        """Renew the server's own lease, then delete those that have expired; whether it was renewed is returned."""
        is_renewed = False
        try:
            self._store.hold(own_lease(self._server_id, self._clock()))
            is_renewed = True
            leases = self._timed(self._store.all, self._lists, self._list_seconds)
            for lease in expired(leases, self._clock()):
                self._timed(partial(self._store.delete, lease), self._deletes, self._delete_seconds)
                self._culled.of().value += 1
                log.info("lease.deleted name=%s reason=expired", one_word(lease.name))
        except GarboardError as error:
            log.warning("lease.failed reason=%s", quoted(error.message))
        return is_renewed

    async def release(self) -> None:
        """Tell agents at once that this server is gone."""
        lease = own_lease(self._server_id, self._clock())
        try:
            async with asyncio.timeout(FAREWELL_TIMEOUT_S):
                await asyncio.to_thread(self._store.delete, lease)
        except (GarboardError, TimeoutError) as error:
            log.warning("lease.not-released reason=%s", quoted(str(error)))

    def families(self) -> dict[str, tuple[str, Metric]]:
        return {
            "culled_leases_count": (CULLED, self._culled),
            "lease_list_latency_seconds": ("How long listing leases took.", self._list_seconds),
            "lease_delete_latency_seconds": ("How long deleting leases took.", self._delete_seconds),
            "lease_list_total": ("Lists of leases, by outcome.", self._lists),
            "lease_delete_total": ("Deletions of leases, by outcome.", self._deletes),
        }

    def _timed(self, ask: Callable[[], ResultT], counter: Counter, seconds: Histograms) -> ResultT:
        began = time.monotonic()
        code, reason = "200", ""
        try:
            return ask()
        except GarboardError as error:
            code, reason = str(getattr(error, "http_status", 0)), error.error_class
            raise
        finally:
            counter.of(code, reason).value += 1
            seconds.of(code).observe(time.monotonic() - began)
