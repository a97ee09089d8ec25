"""How long each phase of a run takes."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from garboard.documents import Json
from garboard.engine.plan import Step


@dataclass(slots=True)
class Stopwatch:
    """Stands around steps, and tells when a phase has ended."""

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
        """Tell how long the phase took that was at work, with all its parts."""
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
