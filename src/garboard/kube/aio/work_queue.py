"""A queue of keys that want work: each once, never two workers on one, failures with growing pauses.

It owns no task and no thread: timers are the clock's. Its laws are the property tests of tests/kube/aio.
"""

import asyncio
from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

from garboard.kube.aio.clock import LOOP_CLOCK, AioClock, TimerHandle
from garboard.retry import Pauses
from garboard.values import dataclass

KeyT = TypeVar("KeyT", bound=Hashable)


class QueueClosed(Exception):
    """The queue was shut down, and nothing is left in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePace:
    """How quickly what failed comes back: per key by `pauses`, and over all keys so many per second after a burst."""

    pauses: Pauses = Pauses(first_s=0.005, longest_s=1000.0, growth=2.0)
    per_second: float = 10.0
    burst: int = 100


class WorkQueue(Generic[KeyT]):
    """Keys in the order in which they came; a key that comes while it is worked on comes again afterwards."""

    def __init__(self, pace: QueuePace | None = None, clock: AioClock = LOOP_CLOCK) -> None:
        self._pace = pace or QueuePace()
        self._clock = clock
        self._ready: deque[KeyT] = deque()
        self._dirty: set[KeyT] = set()  # wants work; in `_ready`, unless it is worked on
        self._active: set[KeyT] = set()
        self._later: dict[KeyT, tuple[float, TimerHandle]] = {}
        self._pauses: dict[KeyT, float] = {}
        self._failures: dict[KeyT, int] = {}
        self._bucket = _Bucket(self._pace, clock)
        self._getters: deque[asyncio.Future[None]] = deque()
        self._idle_waiters: list[asyncio.Future[None]] = []
        self._is_closed = False

    def __len__(self) -> int:
        """How many keys wait for a worker now."""
        return len(self._ready)

    @property
    def is_idle(self) -> bool:
        """Whether no key waits and none is worked on; those that come later do not count."""
        return not self._dirty and not self._active

    @property
    def waiting_later(self) -> int:
        """How many keys come at a later time."""
        return len(self._later)

    def failures(self, key: KeyT) -> int:
        """Return how often a key has failed since it was forgotten."""
        return self._failures.get(key, 0)

    def add(self, key: KeyT) -> None:
        """Have a key worked on as soon as there is a worker."""
        if self._is_closed or key in self._dirty:
            return
        self._dirty.add(key)
        if key not in self._active:
            self._ready.append(key)
            self._wake_one()

    def add_after(self, key: KeyT, delay_s: float) -> None:
        """Have a key worked on later; of two times the earlier one counts."""
        if self._is_closed:
            return
        if delay_s <= 0:
            self.add(key)
            return
        at = self._clock.now_s() + delay_s
        if key in self._later:
            known_at, timer = self._later[key]
            if known_at <= at:
                return
            timer.cancel()
        self._later[key] = (at, self._clock.call_later(delay_s, lambda: self._due(key)))

    def add_failed(self, key: KeyT) -> float:
        """Have a key that failed worked on after its pause, which is returned, and which grows until `forget`."""
        pauses = self._pace.pauses
        pause_s = self._pauses.get(key, pauses.first_s)
        self._pauses[key] = pauses.after(pause_s)
        self._failures[key] = self._failures.get(key, 0) + 1
        delay_s = max(pause_s, self._bucket.reserve())
        self.add_after(key, delay_s)
        return delay_s

    def forget(self, key: KeyT) -> None:
        """Take note that a key did well: its next pause is the first one again."""
        self._pauses.pop(key, None)
        self._failures.pop(key, None)

    async def get(self) -> KeyT:
        """Return the next key, which is its caller's until `done`; raise `QueueClosed` when there will be none."""
        while not self._ready:
            if self._is_closed:
                raise QueueClosed
            await self._await_key()
        key = self._ready.popleft()
        self._dirty.discard(key)
        self._active.add(key)
        return key

    def done(self, key: KeyT) -> None:
        """Give a key back; it is ready again at once if it was added meanwhile."""
        self._active.discard(key)
        if key in self._dirty:
            self._ready.append(key)
            self._wake_one()
        if self.is_idle:
            _wake_all(self._idle_waiters)

    async def idle(self) -> None:
        """Wait until no key waits and none is worked on."""
        while not self.is_idle:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._idle_waiters.append(waiter)
            await waiter

    def shut_down(self) -> None:
        """Take no more keys; those that wait are still handed out, those that would come later are not."""
        self._is_closed = True
        for _, timer in self._later.values():
            timer.cancel()
        self._later.clear()
        while self._getters:
            self._wake_one()

    async def _await_key(self) -> None:
        getter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._getters.append(getter)
        try:
            await getter
        except asyncio.CancelledError:
            if getter.done() and not getter.cancelled():
                self._wake_one()  # it was woken for a key that it will not take
            else:
                self._getters = deque(each for each in self._getters if each is not getter)
            raise

    def _due(self, key: KeyT) -> None:
        self._later.pop(key, None)
        self.add(key)

    def _wake_one(self) -> None:
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return


class _Bucket:
    """Tokens that come back with time; who takes one that is not there yet waits for it."""

    def __init__(self, pace: QueuePace, clock: AioClock) -> None:
        self._pace = pace
        self._clock = clock
        self._tokens = float(pace.burst)
        self._updated_at: float | None = None

    def reserve(self) -> float:
        """Take a token, and return in how many seconds it is there."""
        now = self._clock.now_s()
        passed_s = now - (self._updated_at if self._updated_at is not None else now)
        self._updated_at = now
        self._tokens = min(self._tokens + passed_s * self._pace.per_second, self._pace.burst) - 1
        return max(-self._tokens, 0.0) / self._pace.per_second


def _wake_all(waiters: list["asyncio.Future[None]"]) -> None:
    for each in waiters:
        if not each.done():
            each.set_result(None)
    waiters.clear()
