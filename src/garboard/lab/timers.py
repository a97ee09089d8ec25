"""The timers of a node that are started: a task for each waits for the moment and starts the service."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from garboard.lab.node_units import UnitFolders
from garboard.lab.unit_files import TimerUnit

LOOK_EVERY_S = 0.2


@dataclass(slots=True)
class RunningTimer:
    """A timer that is started; it fires if its moment is later than `base_s`."""

    timer: TimerUnit
    base_s: float
    idle_since_s: float | None  # from when the repetition counts; None while its service runs
    has_repeated: bool = False
    has_elapsed: bool = False  # it fires no more, also with another moment, until it is started anew
    task: asyncio.Task[None] | None = None


class Timers:
    """The started timers of one node; `fire` starts a service by its name, unless it runs."""

    def __init__(
        self,
        folders: UnitFolders,
        fire: Callable[[str], None],
        clock_s: Callable[[], float] = time.time,
        is_running: Callable[[str], bool] = lambda _service: False,
    ) -> None:
        self._folders, self._fire, self._clock_s, self._is_running = folders, fire, clock_s, is_running
        self._running: dict[str, RunningTimer] = {}

    def is_active(self, name: str) -> bool:
        return name in self._running

    def names(self) -> tuple[str, ...]:
        return tuple(self._running)

    def start(self, timer: TimerUnit) -> None:
        """Have a timer fire at its moment; a persistent one fires now if the moment passed while it was stopped.

        One that is started already gets its new moment, unless it has elapsed.
        """
        if timer.name in self._running:
            self._running[timer.name].timer = timer
            return
        running = RunningTimer(timer, self._base_s(timer), self._clock_s())
        self._running[timer.name] = running
        running.task = asyncio.get_running_loop().create_task(self._wait(running))

    def stop(self, name: str) -> None:
        running = self._running.pop(name, None)
        if running and running.task:
            running.task.cancel()

    def forget(self) -> None:
        """Keep no timer any more; the node itself is gone."""
        for name in self.names():
            self.stop(name)

    def _base_s(self, timer: TimerUnit) -> float:
        now_s = self._clock_s()
        if not timer.is_persistent:
            return now_s
        fired_at_s = self._folders.fired_at_s(f"{timer.name}.timer")
        if fired_at_s is None:
            self._folders.note_fired(f"{timer.name}.timer")
            return now_s
        return min(fired_at_s, now_s)  # the clock may have been set back

    async def _wait(self, running: RunningTimer) -> None:
        while True:
            now_s = self._clock_s()
            if not running.has_elapsed and running.timer.is_due(running.base_s, now_s):
                running.base_s = now_s
                if running.timer.is_persistent:
                    self._folders.note_fired(f"{running.timer.name}.timer")
                self._fire(running.timer.service)
            running.has_elapsed = running.has_elapsed or running.timer.has_passed(now_s)
            self._repeat(running, now_s)
            await asyncio.sleep(LOOK_EVERY_S)

    def _repeat(self, running: RunningTimer, now_s: float) -> None:
        """Fire if the service has not run for long enough: since the timer was started, or since it ended."""
        span_s = running.timer.again_s if running.has_repeated else running.timer.after_s
        if self._is_running(running.timer.service):
            running.has_repeated, running.idle_since_s = True, None
        elif running.idle_since_s is None:
            running.idle_since_s = now_s
        elif span_s is not None and now_s - running.idle_since_s >= span_s:
            running.has_repeated, running.idle_since_s = True, None
            self._fire(running.timer.service)
