"""A clock whose time passes when a test says so: timers ring in their order, and what they wake runs in between."""

import asyncio
import heapq
from collections.abc import Callable
from itertools import count


class _Timer:
    def __init__(self, callback: Callable[[], object]) -> None:
        self.callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        self.callback = None


class ManualClock:
    """Satisfies `garboard.kube.aio.AioClock`."""

    def __init__(self, now_s: float = 1000.0) -> None:
        self._now_s = now_s
        self._timers: list[tuple[float, int, _Timer]] = []
        self._numbers = count()

    def now_s(self) -> float:
        return self._now_s

    def call_later(self, delay_s: float, callback: Callable[[], object]) -> _Timer:
        timer = _Timer(callback)
        heapq.heappush(self._timers, (self._now_s + max(delay_s, 0.0), next(self._numbers), timer))
        return timer

    @property
    def next_at(self) -> float | None:
        """When the next timer rings; None if there is none."""
        while self._timers and self._timers[0][2].callback is None:
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    def advance_now(self, seconds: float) -> None:
        """Let time pass and ring the timers, without letting any task run in between."""
        end = self._now_s + seconds
        while (at := self.next_at) is not None and at <= end:
            self._now_s = max(at, self._now_s)
            _, _, timer = heapq.heappop(self._timers)
            callback, timer.callback = timer.callback, None
            if callback is not None:
                callback()
        self._now_s = end

    async def advance(self, seconds: float) -> None:
        """Let time pass, and everything run that waits for it."""
        end = self._now_s + seconds
        await settle()
        while (at := self.next_at) is not None and at <= end:
            self.advance_now(max(at - self._now_s, 0.0))
            await settle()
        self.advance_now(end - self._now_s)
        await settle()


async def settle(rounds: int = 200) -> None:
    """Let every task run that can, as long as none waits for a socket or a clock of its own."""
    for _ in range(rounds):
        await asyncio.sleep(0)
