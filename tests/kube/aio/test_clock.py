"""Pauses and time limits on a clock that tests move."""

import asyncio

import pytest

from garboard.kube.aio import pause, time_limit
from tests.support.kube.manual_clock import ManualClock, settle


def test_pause_ends_when_its_time_has_come() -> None:
    async def scenario() -> None:
        clock = ManualClock()
        waiting = asyncio.ensure_future(pause(clock, 5))
        await clock.advance(4.9)
        assert not waiting.done()
        await clock.advance(0.1)
        assert waiting.done()

    asyncio.run(scenario())


def test_pause_that_is_cancelled_leaves_no_timer() -> None:
    async def scenario() -> None:
        clock = ManualClock()
        waiting = asyncio.ensure_future(pause(clock, 5))
        await settle()
        waiting.cancel()
        await settle()
        assert clock.next_at is None

    asyncio.run(scenario())


def test_time_limit_ends_its_block_only() -> None:
    async def scenario() -> None:
        clock, done = ManualClock(), []

        async def limited() -> None:
            with pytest.raises(TimeoutError):
                async with time_limit(clock, 3):
                    await asyncio.get_running_loop().create_future()
            async with time_limit(clock, 3):
                done.append("in time")
            await pause(clock, 10)
            done.append("later")

        working = asyncio.ensure_future(limited())
        await clock.advance(20)
        await working
        assert done == ["in time", "later"]

    asyncio.run(scenario())
