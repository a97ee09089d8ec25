import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from garboard.lab.timers import Timers
from garboard.lab.unit_files import TimerUnit
from tests.support.lab.unit_folders import MemoryUnitFolders

PERSISTENT = TimerUnit("x", "x", 100.0, is_persistent=True)
PASSING = TimerUnit("x", "x", 100.0)
LOOK_EVERY_S = 0.005
LONG_AFTER_S = 1000.0


@pytest.fixture(autouse=True)
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("garboard.lab.timers.LOOK_EVERY_S", LOOK_EVERY_S)


def fired(folders: MemoryUnitFolders, scene: Callable[[Timers], Awaitable[None]]) -> list[str]:
    """Return what fired in a scene, and after each timer has looked at the clock long afterwards."""

    async def run() -> list[str]:
        names: list[str] = []
        timers = Timers(folders, names.append, folders.clock_s)
        await scene(timers)
        folders.now_s = LONG_AFTER_S
        # A loop wakes those first who wait for less, however slow the machine is.
        await asyncio.sleep(10 * LOOK_EVERY_S)
        timers.forget()
        assert timers.names() == ()
        return names

    return asyncio.run(asyncio.wait_for(run(), 20))


@pytest.mark.parametrize(
    ("timer", "stamp", "now_s", "fires"),
    [
        pytest.param(PERSISTENT, None, 50.0, True, id="its moment comes"),
        pytest.param(PERSISTENT, None, 101.0, False, id="its moment had passed when it was first started"),
        pytest.param(PERSISTENT, 50.0, 101.0, True, id="its moment passed while it was stopped"),
        pytest.param(PERSISTENT, 100.5, 101.0, False, id="it has fired"),
        pytest.param(PERSISTENT, 900.0, 50.0, True, id="the clock was set back"),
        pytest.param(PASSING, 50.0, 101.0, False, id="it is not persistent"),
    ],
)
def test_timer_fires_at_its_moment_or_afterwards(
    timer: TimerUnit, stamp: float | None, now_s: float, fires: bool
) -> None:
    async def scene(timers: Timers) -> None:
        timers.start(timer)
        assert timers.is_active("x")

    folders = MemoryUnitFolders(stamps={} if stamp is None else {"x.timer": stamp}, now_s=now_s)
    assert fired(folders, scene).count("x") == int(fires)


@pytest.mark.parametrize("is_stopped_first", [True, False])
def test_timer_that_has_elapsed_gets_another_moment_only_if_it_is_started_anew(is_stopped_first: bool) -> None:
    async def scene(timers: Timers) -> None:
        timers.start(PERSISTENT)
        folders.now_s = 100.0
        while folders.stamps["x.timer"] != 100.0:
            await asyncio.sleep(0.01)
        if is_stopped_first:
            timers.stop("x")
        timers.start(replace(PERSISTENT, at_s=200.0))
        folders.now_s = 150.0

    folders = MemoryUnitFolders(now_s=50.0)
    assert fired(folders, scene).count("x") == 1 + is_stopped_first


def test_repeated_timer_counts_from_its_start_and_then_from_the_end_of_its_service() -> None:
    timer = TimerUnit("x", "x", None, after_s=10.0, again_s=30.0)
    folders, fired_at, is_running = MemoryUnitFolders(now_s=100.0), list[float](), False

    def fire(_service: str) -> None:
        nonlocal is_running
        is_running = True
        fired_at.append(folders.now_s)

    async def at(now_s: float) -> None:
        folders.now_s = now_s
        await asyncio.sleep(10 * LOOK_EVERY_S)

    async def run() -> None:
        nonlocal is_running
        timers = Timers(folders, fire, folders.clock_s, lambda _service: is_running)
        timers.start(timer)
        for now_s in (100.0, 109.0, 110.0, 500.0):
            await at(now_s)
        is_running = False
        for now_s in (501.0, 530.0, 531.0):
            await at(now_s)
        timers.forget()

    asyncio.run(asyncio.wait_for(run(), 20))
    assert fired_at == [110.0, 531.0]


def test_timer_that_is_stopped_does_not_fire() -> None:
    async def scene(timers: Timers) -> None:
        timers.start(PERSISTENT)
        timers.stop("x")
        timers.stop("x")

    assert fired(MemoryUnitFolders(now_s=50.0), scene) == []
