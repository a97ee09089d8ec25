"""A gate is one class with a tag: plans print it, journals keep it and runs wait for it, also if a test defines it."""

import json
import pkgutil
from dataclasses import dataclass
from importlib import import_module

import pytest

from garboard.documents import Json
from garboard.engine import AwaitGate, Evidence, Executor, Gate, GateFailed, Plan, PlanCodec, Probe, Step, Tagged
from garboard.engine.show import plan_as_json, plan_as_text
from garboard.node.interpreters import ProbingWaiter, interpreters_over
from garboard.node.runs import plan_codec
from garboard.phases import gates
from garboard.retry import Clock
from tests.support.engine.actions import MemoryFiles
from tests.support.node.edges import EveryEdge


@dataclass(frozen=True)
class TideIsIn(Gate):
    """A gate that none of our packages knows."""

    harbour: str
    timeout_s: float = 5.0

    @property
    def name(self) -> str:
        return f"the tide in {self.harbour}"

    def describe(self) -> dict[str, Json]:
        return {"harbour": self.harbour}

    def probe(self, view: dict[str, list[str | None]], /) -> Probe:
        return lambda: view[self.harbour].pop(0)

    def evidence(self, view: object, /) -> Evidence:
        return Evidence(("the moon is down",), "look at the sea")


PLAN = Plan((Step(AwaitGate(gate=TideIsIn("Cuxhaven")), "ships", "wait", "n"),))


def test_gate_from_anywhere_is_printed_and_kept() -> None:
    assert "wait for the tide in Cuxhaven (at most 5 s)" in plan_as_text(PLAN)
    assert '"harbour": "Cuxhaven"' in json.dumps(plan_as_json(PLAN))
    codec = PlanCodec((Tagged("tide-is-in", TideIsIn),))
    assert codec.decode(json.loads(json.dumps(codec.encode(PLAN)))) == PLAN


def test_every_gate_of_the_phases_can_be_kept_in_a_journal() -> None:
    modules = [import_module(each.name) for each in pkgutil.iter_modules(gates.__path__, f"{gates.__name__}.")]
    found = {
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Gate) and value is not Gate
    }
    assert gates.EtcdHealthy in found
    assert found <= set(plan_codec()._tags)


@pytest.mark.parametrize("tides", [["low", "low", None], ["low"] * 3])
def test_gate_from_anywhere_is_waited_for(tides: list[str | None]) -> None:
    elapsed_s = [0.0]
    clock = Clock(lambda: elapsed_s[0], lambda _seconds: elapsed_s.__setitem__(0, elapsed_s[0] + 2.5))
    view: EveryEdge = type("View", (EveryEdge,), {"__getitem__": lambda _self, _name: tides})()
    executor = Executor(interpreters_over(files=MemoryFiles(), waiter=ProbingWaiter(view, clock)))
    if None in tides:
        executor.execute(PLAN)
        assert tides == []
    else:
        with pytest.raises(GateFailed, match="in vain for the tide in Cuxhaven: low\n  the moon is down") as caught:
            executor.execute(PLAN)
        assert caught.value.hint == "look at the sea"
