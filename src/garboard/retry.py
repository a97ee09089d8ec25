"""Trying again until it works or time has run out, on a clock that tests bring along.

Waits report to the command that they are part of: every few seconds each of them says what it waits for.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from garboard.errors import GarboardError
from garboard.values import dataclass

Value = TypeVar("Value")
REPORT_EVERY_S = 5.0

# A wait may be anywhere below a command; to hand the function down to each of them would be in every signature.
_report: ContextVar[Callable[[str], None] | None] = ContextVar("report", default=None)


@contextmanager
def reporting_waits(report: Callable[[str], None]) -> Iterator[None]:
    """Have every wait within this block report, every few seconds, what it waits for and for how long at most."""
    token = _report.set(report)
    try:
        yield
    finally:
        _report.reset(token)


@dataclass(frozen=True, slots=True)
class Clock:
    """Time as waiting sees it: seconds that only grow, and a pause."""

    now_s: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


CLOCK = Clock()


@dataclass(frozen=True, slots=True)
class Deadline:
    """The end of the time that something may take."""

    give_up_at: float
    clock: Clock = CLOCK

    @classmethod
    def after(cls, timeout_s: float, clock: Clock = CLOCK) -> "Deadline":
        return cls(clock.now_s() + timeout_s, clock)

    def left_s(self) -> float:
        """Return how many seconds are left, 0 once it has passed."""
        return max(self.give_up_at - self.clock.now_s(), 0.0)


class Wait:
    """One wait with its end, which is reported while it lasts."""

    def __init__(self, timeout_s: float, clock: Clock = CLOCK) -> None:
        self._clock = clock
        self._began_at = self._reported_at = clock.now_s()
        self._end = Deadline.after(timeout_s, clock)

    @property
    def left_s(self) -> float:
        return self._end.left_s()

    def report(self, problem: str) -> None:
        """Report what is in the way, unless that was reported a moment ago."""
        report, now = _report.get(), self._clock.now_s()
        if report is not None and now - self._reported_at >= REPORT_EVERY_S:
            report(f"[wait] {now - self._began_at:.0f} s: {problem}; for at most {self.left_s:.0f} s more")
            self._reported_at = now


@dataclass(frozen=True, slots=True)
class Pauses:
    """How long to wait between two attempts: `first_s` at first, then `growth` times longer, never over `longest_s`."""

    first_s: float
    longest_s: float
    growth: float = 1.0

    @classmethod
    def every(cls, seconds: float) -> "Pauses":
        return cls(seconds, seconds)

    def after(self, pause_s: float) -> float:
        return min(pause_s * self.growth, self.longest_s)


def wait_until(
    probe: Callable[[], str | None], *, timeout_s: float, pauses: Pauses, clock: Clock = CLOCK
) -> str | None:
    """Probe until it returns None, which is returned; once time has run out, return what was in the way last.

    One probe is always made, and one more at the very end.
    """
    wait = Wait(timeout_s, clock)
    pause_s = pauses.first_s
    while True:
        problem = probe()
        left_s = wait.left_s
        if problem is None or left_s <= 0:
            return problem
        wait.report(problem)
        clock.sleep(min(pause_s, left_s))
        pause_s = pauses.after(pause_s)


def try_times(attempt: Callable[[], str | None], *, tries: int, pause_s: float, clock: Clock = CLOCK) -> str | None:
    """Attempt until it returns None, which is returned; after so many tries, return what was in the way last.

    For what may take any time itself, so that only the attempts can be counted.
    """
    problem = attempt()
    for _ in range(tries - 1):
        if problem is None:
            break
        clock.sleep(pause_s)
        problem = attempt()
    return problem


def retry(
    attempt: Callable[[], Value],
    *,
    timeout_s: float,
    pauses: Pauses,
    is_passing: Callable[[GarboardError], bool],
    on_failure: Callable[[GarboardError, float], None] = lambda _error, _left_s: None,
    clock: Clock = CLOCK,
) -> Value:
    """Return what the attempt returns, once it succeeds; a failure that will not pass, or the last one, is raised.

    `is_passing` says of a failure whether another attempt may do better; `on_failure` gets each such failure, and
    how many seconds are left.
    """
    wait = Wait(timeout_s, clock)
    pause_s = pauses.first_s
    while True:
        try:
            return attempt()
        except GarboardError as error:
            left_s = wait.left_s
            if left_s <= 0 or not is_passing(error):
                raise
            on_failure(error, left_s)
            wait.report(error.message)
        clock.sleep(min(pause_s, left_s))
        pause_s = pauses.after(pause_s)
