"""One leader among several processes: a Lease that is renewed while the work lasts, which ends before it may be lost.

Whether another holder is alive is judged as the blocking client judges it (`garboard.kube.leases`): by how long we have
seen its Lease unchanged, never by the time that is written in it.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress

from garboard.errors import GarboardError
from garboard.kube.aio.api import KubeApi
from garboard.kube.aio.clock import LOOP_CLOCK, AioClock, pause, time_limit
from garboard.kube.errors import ObjectConflict, ObjectExists
from garboard.kube.leases import Lease, LeaseClaim, LeaseLost, LeaseObserver
from garboard.values import dataclass

log = logging.getLogger("garboard.kube")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderPace:
    """How often the Lease is renewed or asked for, and how long a leader works on without a renewal.

    Others wait for the duration of the Lease, which must be longer: what is in between is the time for the work to end.
    """

    every_s: float = 2.0
    without_renewal_s: float = 10.0
    release_within_s: float = 5.0


class LeaderElection:
    """One candidate for a Lease. Its holder name must be of this process alone."""

    def __init__(
        self,
        api: KubeApi,
        claim: LeaseClaim,
        *,
        pace: LeaderPace | None = None,
        clock: AioClock = LOOP_CLOCK,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._api = api
        self._claim = claim
        self._pace = pace or LeaderPace()
        assert self._pace.without_renewal_s < claim.duration_s, "a leader stops before others may begin"
        self._clock = clock
        self._jitter = jitter
        self._lease: Lease | None = None
        self._renewed_at = 0.0

    @property
    def is_leader(self) -> bool:
        return self._lease is not None

    async def lead(self, work: Callable[[], Awaitable[None]]) -> None:
        """Wait until the Lease is ours, then work, and release it at the end.

        `LeaseLost` is raised when it could not be renewed in time or has another holder; the work has been cancelled
        then, and has ended.
        """
        await self._acquire()
        log.info("leader.elected lease=%s holder=%s", self._claim, self._claim.holder)
        try:
            await self._work_while_renewing(work)
        finally:
            await self._release()

    async def _work_while_renewing(self, work: Callable[[], Awaitable[None]]) -> None:
        async def working(renewal: "asyncio.Task[None]") -> None:
            await work()
            renewal.cancel()

        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(working(group.create_task(self._renew_until_lost())))
        except ExceptionGroup as failures:
            # What the work says while it is cancelled matters less than why it was.
            lost = [each for each in failures.exceptions if isinstance(each, LeaseLost)]
            raise (lost or failures.exceptions)[0] from None

    async def _acquire(self) -> None:
        observer, reported = LeaseObserver(), ""
        while True:
            try:
                holder = await self._try(observer)
            except GarboardError as error:
                holder = error.message
            if self._lease is not None:
                return
            if holder != reported:
                log.info("leader.waiting lease=%s for=%r", self._claim, holder)
                reported = holder
            await pause(self._clock, self._pace.every_s * (1 + 0.2 * self._jitter()))

    async def _try(self, observer: LeaseObserver) -> str:
        """Acquire the Lease if it is free; else return who holds it."""
        found = await self._api.find(self._claim.ref)
        lease = Lease.read(found) if found else None
        if lease is not None and not self._is_free(lease, observer):
            return lease.holder
        sent_at, ours = self._clock.now_s(), self._claim.acquired(lease)
        content = ours.content(self._claim.name, self._claim.namespace)
        try:
            if lease is None:
                stored = await self._api.create(self._claim.ref, content)
            else:
                stored = await self._api.replace(self._claim.ref, content)
        except (ObjectExists, ObjectConflict):
            return "another candidate, which was quicker"
        self._lease, self._renewed_at = Lease.read(stored), sent_at
        return self._claim.holder

    def _is_free(self, lease: Lease, observer: LeaseObserver) -> bool:
        return lease.holder in ("", self._claim.holder) or observer.is_dead(lease, self._clock.now_s())

    async def _renew_until_lost(self) -> None:
        while True:
            await pause(self._clock, self._pace.every_s)
            left_s = self._renewed_at + self._pace.without_renewal_s - self._clock.now_s()
            failure = ""
            try:
                async with time_limit(self._clock, max(left_s, 0.0)):
                    await self._renew()
            except LeaseLost:
                raise
            except GarboardError as error:
                failure = error.message
            except TimeoutError:
                failure = "the API server did not answer in time"
            if self._clock.now_s() - self._renewed_at >= self._pace.without_renewal_s:
                raise LeaseLost(
                    f"{self._claim} could not be renewed for {self._pace.without_renewal_s:.0f} s: {failure}",
                    hint="another process may lead soon: this one begins anew",
                )

    async def _renew(self) -> None:
        assert self._lease is not None
        try:
            await self._write_renewal(self._lease)
        except ObjectConflict:
            # Ours may be the change: the answer to an earlier renewal was lost. Another holder is seen here.
            await self._write_renewal(await self._ours())

    async def _write_renewal(self, lease: Lease) -> None:
        sent_at = self._clock.now_s()
        content = lease.renewed_now(self._claim.duration_s).content(self._claim.name, self._claim.namespace)
        self._lease = Lease.read(await self._api.replace(self._claim.ref, content))
        self._renewed_at = sent_at

    async def _ours(self) -> Lease:
        """Return the Lease as it is; raise if it is not ours any more."""
        assert self._lease is not None
        found = await self._api.find(self._claim.ref)
        lease = Lease.read(found) if found else None
        self._claim.refuse_other(lease, self._lease.transitions)
        assert lease is not None
        return lease

    async def _release(self) -> None:
        """Let the next candidate begin at once, if the Lease is still ours; else it runs out by itself."""
        if self._lease is None:
            return
        with suppress(GarboardError, TimeoutError):
            async with time_limit(self._clock, self._pace.release_within_s):
                try:
                    await self._free(self._lease)
                except ObjectConflict:
                    await self._free(await self._ours())
        self._lease = None

    async def _free(self, lease: Lease) -> None:
        content = lease.freed(lease.payloads).content(self._claim.name, self._claim.namespace)
        await self._api.replace(self._claim.ref, content)
