"""Time as controllers see it, which tests replace: seconds that only grow, and calls that come later."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Protocol


class TimerHandle(Protocol):
    """A call that comes later, unless it is cancelled."""

    def cancel(self) -> None:
        """Let the call not happen."""


class AioClock(Protocol):
    """Time, and timers on it."""

    def now_s(self) -> float:
        """Return seconds that only grow."""

    def call_later(self, delay_s: float, callback: Callable[[], object]) -> TimerHandle:
        """Call back on the event loop when so much time has passed."""


class LoopClock:
    """The time of the running event loop."""

    def now_s(self) -> float:
        return asyncio.get_running_loop().time()

    def call_later(self, delay_s: float, callback: Callable[[], object]) -> TimerHandle:
        return asyncio.get_running_loop().call_later(delay_s, callback)


LOOP_CLOCK = LoopClock()


async def pause(clock: AioClock, seconds: float) -> None:
    """Wait for so long on a clock."""
    passed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    timer = clock.call_later(seconds, partial(_end, passed))
    try:
        await passed
    finally:
        timer.cancel()


def _end(passed: "asyncio.Future[None]") -> None:
    if not passed.done():
        passed.set_result(None)


@asynccontextmanager
async def time_limit(clock: AioClock, seconds: float) -> AsyncIterator[None]:
    """Raise `TimeoutError` from the block once so much time has passed on a clock."""
    async with asyncio.timeout(None) as scope:
        timer = clock.call_later(seconds, lambda: scope.reschedule(0.0))
        try:
            yield
        finally:
            timer.cancel()
