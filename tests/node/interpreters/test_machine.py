"""Gates are probed quickly at first, more slowly later, and never beyond their time."""

from dataclasses import dataclass, field

import pytest

from garboard.documents import Json
from garboard.engine import Evidence, Gate, GateFailed, Probe
from garboard.node.interpreters import ProbingWaiter
from garboard.retry import Clock
from tests.support.phases.gates.views import MemoryNodeView


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


@dataclass
class ScriptedGate(Gate):
    """A gate that is passed from a moment on."""

    time: FakeTime
    passes_at_s: float
    timeout_s: float = 60.0
    found: Evidence = field(default_factory=Evidence)
    collected: int = 0

    @property
    def name(self) -> str:
        return "a made-up service"

    def describe(self) -> dict[str, Json]:
        return {}

    def probe(self, _view: object, /) -> Probe:
        return lambda: None if self.time.now_s >= self.passes_at_s else f"stopped at {self.time.now_s:.2f} s"

    def evidence(self, _view: object, /) -> Evidence:
        self.collected += 1
        return self.found


def wait(gate: ScriptedGate) -> None:
    ProbingWaiter(MemoryNodeView(), gate.time.clock).wait(gate)


def test_a_gate_that_is_passed_at_once_costs_no_time() -> None:
    gate = ScriptedGate(FakeTime(), 0, timeout_s=0)
    wait(gate)
    assert gate.time.slept == []
    assert gate.collected == 0


def test_a_gate_that_is_passed_soon_is_noticed_soon() -> None:
    gate = ScriptedGate(FakeTime(), 0.3)
    wait(gate)
    assert gate.time.now_s < 0.45


def test_probes_come_more_slowly_but_never_rarer_than_six_times_a_second() -> None:
    gate = ScriptedGate(FakeTime(), 30)
    wait(gate)
    assert gate.time.slept[0] == 0.02
    assert max(gate.time.slept) == 0.15
    assert gate.time.now_s <= 30.15


def test_failure_carries_what_was_found_the_evidence_and_the_next_command() -> None:
    evidence = Evidence(("its log is empty", "it says:\n  | no line"), "journalctl --unit made-up")
    gate = ScriptedGate(FakeTime(), 99, 4, evidence)
    with pytest.raises(GateFailed) as failed:
        wait(gate)
    assert gate.time.now_s == pytest.approx(4)
    assert failed.value.message == (
        "waited 4 s in vain for a made-up service: stopped at 4.00 s\n  its log is empty\n  it says:\n    | no line"
    )
    assert failed.value.hint == "journalctl --unit made-up"
