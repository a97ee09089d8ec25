"""Context managers around each step of a run: stopping at Ctrl-C and SIGTERM between two steps, and timing phases."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import ClassVar

from garboard.documents import Json
from garboard.engine import Step, traits_of
from garboard.errors import GarboardError

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(GarboardError):
    """A signal stopped the run between two steps."""

    exit_code: ClassVar[int] = 130
    default_class = "interrupted"


class _StopRequested(BaseException):
    """Leaves a step at once. It is no `GarboardError`: probes and retries take those for a reason to look again."""


class Interruption:
    """Stops a run between two steps when a signal asks for that; a step that only waits is left at once.

    Where the run may not stop, within a unit, only a second signal is obeyed at once.
    """

    def __init__(self) -> None:
        self._is_asked = False
        self._is_waiting = False

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Handle the signals while a plan is carried out."""
        former = {each: signal.signal(each, self._asked) for each in _SIGNALS}
        try:
            yield
        except _StopRequested:
            raise Interrupted("interrupted") from None
        finally:
            for each, handler in former.items():
                signal.signal(each, handler)

    @contextmanager
    def around(self, step: Step, *, may_stop: bool = True) -> Iterator[None]:
        # In this order: a signal in between is obeyed by the check, one after the check by its handler.
        self._is_waiting = bool(traits_of(step.action).waits_for) and may_stop
        try:
            if self._is_asked and may_stop:
                raise Interrupted(f"interrupted before {step.phase}")
            yield
        finally:
            self._is_waiting = False

    def _asked(self, _number: int, _frame: FrameType | None) -> None:
        # A second signal is obeyed at once, in the middle of the step.
        is_obeyed_at_once, self._is_asked = self._is_asked or self._is_waiting, True
        if is_obeyed_at_once:
            raise _StopRequested


@contextmanager
def without_hangup() -> Iterator[None]:
    """Ignore SIGHUP, which the end of a terminal or an ssh session sends; programs that a step runs ignore it too."""
    former = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, former)


@dataclass(slots=True)
class Boundaries:
    """Tells where a run may stop: before any step but those that continue the unit of the step before."""

    _unit: str = ""

    def is_before(self, step: Step) -> bool:
        before, self._unit = self._unit, step.unit
        return not step.unit or step.unit != before


@dataclass(slots=True)
class Stopwatch:
    """Measures how long steps take, and reports when a phase has ended."""

    report: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    seconds: dict[str, float] = field(default_factory=dict)
    _current: str = ""

    @contextmanager
    def around(self, step: Step) -> Iterator[None]:
        """Add the time that the step takes to that of its phase."""
        if _whole(step.phase) != self._current:
            self.finish()
            self._current = _whole(step.phase)
        started_at = self.clock()
        try:
            yield
        finally:
            self.seconds[step.phase] = self.seconds.get(step.phase, 0.0) + self.clock() - started_at

    def finish(self) -> None:
        """Report how long the current phase took, with all its parts."""
        if self._current:
            took = sum(each for phase, each in self.seconds.items() if _whole(phase) == self._current)
            self.report(f"[{self._current}] done in {took:.2f} s")
        self._current = ""

    def as_json(self) -> Json:
        phases: list[Json] = [{"phase": name, "seconds": round(took, 3)} for name, took in self.seconds.items()]
        return {"phases": phases, "seconds": round(sum(self.seconds.values()), 3)}

    def as_text(self) -> str:
        """Return a table: the phases in their order, and the sum."""
        rows = [*self.seconds.items(), ("all phases", sum(self.seconds.values()))]
        width = max(len(name) for name, _ in rows)
        return "".join(f"{name:<{width}}  {took:8.2f} s\n" for name, took in rows)


def _whole(phase: str) -> str:
    return phase.partition("/")[0]
