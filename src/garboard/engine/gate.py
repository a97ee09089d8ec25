"""Waiting for gates: looked at again and again until open or too late, and then the evidence is gathered."""

import time
from collections.abc import Callable
from typing import TypeAlias

from garboard.engine.action import Gate
from garboard.errors import GarboardError
from garboard.values import dataclass

# The first looks come quickly, for most gates open within moments; later ones leave the machine its time.
FIRST_INTERVAL_S, LONGEST_INTERVAL_S, _GROWTH = 0.02, 0.15, 1.1

Look: TypeAlias = Callable[[], str | None]  # None if the gate is open, else what is seen instead, in words


@dataclass(frozen=True, slots=True)
class Clock:
    """Time as waiting sees it; tests bring their own."""

    now_s: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


CLOCK = Clock()


@dataclass(frozen=True, slots=True)
class Evidence:
    """What can be found out about a gate that stays closed, and the command that shows more."""

    lines: tuple[str, ...] = ()
    next_command: str = ""


class GateFailed(GarboardError):
    """A gate did not open in time. Its message carries the evidence, one fact in a line."""

    default_class = "gate-timeout"

    def __init__(self, gate: Gate, seen: str, evidence: Evidence) -> None:
        lines = "".join(f"\n  {line}" for text in evidence.lines for line in text.splitlines())
        super().__init__(
            f"waited {gate.timeout_s:.0f} s in vain for {gate.name}: {seen}{lines}",
            hint=evidence.next_command or None,
        )
        self.evidence = evidence


def wait_until_open(look: Look, *, timeout_s: float, clock: Clock = CLOCK) -> str | None:
    """Look until the gate is open; return None then, or what was seen last if time ran out. One look is always had."""
    give_up_at = clock.now_s() + timeout_s
    interval_s = FIRST_INTERVAL_S
    while True:
        seen = look()
        left_s = give_up_at - clock.now_s()
        if seen is None or left_s <= 0:
            return seen
        clock.sleep(min(interval_s, left_s))
        interval_s = min(interval_s * _GROWTH, LONGEST_INTERVAL_S)


@dataclass(frozen=True, slots=True)
class GateWatcher:
    """Waits for gates. `look_at` prepares how one is looked at, `gather` finds out why it stays closed."""

    look_at: Callable[[Gate], Look]
    gather: Callable[[Gate], Evidence]
    clock: Clock = CLOCK

    def wait(self, gate: Gate) -> None:
        """Return once the gate is open; raise with the evidence if it is not in time."""
        seen = wait_until_open(self.look_at(gate), timeout_s=gate.timeout_s, clock=self.clock)
        if seen is not None:
            raise GateFailed(gate, seen, self.gather(gate))
