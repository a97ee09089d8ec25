"""Gates are looked at quickly at first, more slowly later, and never beyond their time."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from garboard.documents import Json
from garboard.engine import Clock, Evidence, GateFailed, GateWatcher, wait_until_open


@dataclass
class FakeTime:
    """A clock that only moves when somebody sleeps."""

    now_s: float = 0.0
    slept: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now_s += seconds

    @property
    def clock(self) -> Clock:
        return Clock(lambda: self.now_s, self.sleep)


@dataclass(frozen=True)
class Door:
    name: str = "an open door"
    timeout_s: float = 4.0

    def describe(self) -> dict[str, Json]:
        return {}


def opens_at(moment_s: float, time: FakeTime) -> Callable[[], str | None]:
    return lambda: None if time.now_s >= moment_s else f"closed at {time.now_s:.2f} s"


def test_an_open_gate_costs_no_time() -> None:
    time = FakeTime()
    assert wait_until_open(opens_at(0, time), timeout_s=0, clock=time.clock) is None
    assert time.slept == []


def test_a_gate_that_opens_soon_is_noticed_soon() -> None:
    time = FakeTime()
    assert wait_until_open(opens_at(0.3, time), timeout_s=60, clock=time.clock) is None
    assert time.now_s < 0.45


def test_looks_come_more_slowly_but_never_rarer_than_six_times_a_second() -> None:
    time = FakeTime()
    wait_until_open(opens_at(30, time), timeout_s=60, clock=time.clock)
    assert time.slept[0] == 0.02
    assert max(time.slept) == 0.15
    assert time.now_s <= 30.15


def test_the_last_look_is_at_the_deadline() -> None:
    time = FakeTime()
    assert wait_until_open(opens_at(99, time), timeout_s=4, clock=time.clock) == "closed at 4.00 s"
    assert time.now_s == pytest.approx(4)


def test_failure_carries_what_was_seen_the_evidence_and_the_next_command() -> None:
    time = FakeTime()
    evidence = Evidence(("the lock is rusty", "it says:\n  | creak"), "oil --lock")
    watcher = GateWatcher(lambda gate: opens_at(99, time), lambda gate: evidence, time.clock)
    with pytest.raises(GateFailed) as failed:
        watcher.wait(Door())
    assert failed.value.message == (
        "waited 4 s in vain for an open door: closed at 4.00 s\n  the lock is rusty\n  it says:\n    | creak"
    )
    assert failed.value.hint == "oil --lock"


def test_no_evidence_is_gathered_for_a_gate_that_opens() -> None:
    time = FakeTime()
    asked: list[object] = []

    def gather(gate: object) -> Evidence:
        asked.append(gate)
        return Evidence()

    GateWatcher(lambda gate: opens_at(1, time), gather, time.clock).wait(Door())
    assert asked == []
