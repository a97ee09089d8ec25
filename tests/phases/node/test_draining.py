"""A node taken out of service and back, and one that its owner had cordoned."""

import pytest

from garboard.documents import Json
from garboard.engine import (
    AwaitGate,
    EvictPods,
    Interpreters,
    Observers,
    PatchObject,
    Plan,
    Step,
    StepContext,
    plan_undo,
    step_title,
)
from garboard.node.runs import plan_codec
from garboard.phases.gates import NodeDrained
from garboard.phases.node.draining import DrainSettings, NodeScheduling, plan_drain, plan_uncordon
from tests.support.engine.actions import MemoryFiles
from tests.support.engine.runs import MemoryRun, carried_out

FREE, CORDONED = NodeScheduling(name="n1"), NodeScheduling(name="n1", is_cordoned=True)


@pytest.mark.parametrize(
    ("spec", "is_cordoned"),
    [({}, False), ({"unschedulable": False}, False), ({"unschedulable": True}, True), (None, False)],
    ids=["says nothing", "no", "yes", "no spec"],
)
def test_cordon_is_read_from_the_node(spec: Json, is_cordoned: bool) -> None:
    found = NodeScheduling.read({"metadata": {"name": "n1"}, "spec": spec})
    assert found == NodeScheduling(name="n1", is_cordoned=is_cordoned)


def test_node_is_cordoned_drained_and_uncordoned() -> None:
    settings = DrainSettings(timeout_s=300, grace_s=20, deletes_empty_dirs=True)
    steps = [*plan_drain(FREE, "it is upgraded", settings), *plan_uncordon(FREE, "it is upgraded")]
    assert [step_title(step) for step in steps] == [
        "patch Node n1",
        "evict the pods of Node n1 (at most 300 s)",
        "wait for Node n1 to be drained (at most 300 s)",
        "patch Node n1",
    ]
    evicted = steps[1].action
    assert isinstance(evicted, EvictPods)
    assert (evicted.grace_s, evicted.deletes_unmanaged, evicted.deletes_empty_dirs) == (20, False, True)
    plan = Plan(tuple(steps))
    assert plan_codec().plan_from_bytes(plan_codec().plan_to_bytes(plan)) == plan


def test_owner_cordoned_node_is_drained_and_stays_cordoned() -> None:
    drained = [type(step.action) for step in plan_drain(CORDONED, "")]
    assert drained == [EvictPods, AwaitGate]
    assert list(plan_uncordon(CORDONED, "")) == []


class OneNode:
    """A Node whose scheduling is patched, and observed."""

    def __init__(self, spec: dict[str, Json]) -> None:
        self.spec = spec

    def find(self, kind: str, namespace: str, name: str, *, api_version: str = "") -> dict[str, Json] | None:
        return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, "spec": dict(self.spec)}

    def patch(self, action: PatchObject, _run: StepContext | None = None) -> None:
        content = action.content
        assert isinstance(content, dict)
        assert isinstance(content["spec"], dict)
        merged = {**self.spec, **content["spec"]}
        self.spec = {key: value for key, value in merged.items() if value is not None}

    def interpreters(self) -> Interpreters:
        return Interpreters().add(PatchObject, self.patch).add(EvictPods, lambda *_: None)

    def drain(self, *more: Step) -> tuple[Plan, MemoryRun]:
        found = self.find("Node", "", "n1")
        assert found is not None
        steps = (*plan_drain(NodeScheduling.read(found), ""), *more)
        plan = Plan(tuple(step for step in steps if not isinstance(step.action, AwaitGate)))
        return plan, carried_out(plan, self.interpreters(), self.observers)

    @property
    def observers(self) -> Observers:
        return Observers(files=MemoryFiles(), objects=self)


@pytest.mark.parametrize("spec", [{}, {"podCIDR": "10.1.0.0/24"}, {"unschedulable": True}], ids=str)
@pytest.mark.parametrize("is_back", [False, True], ids=["drained", "uncordoned again"])
def test_undo_leaves_the_node_as_its_owner_had_it(spec: dict[str, Json], is_back: bool) -> None:
    node = OneNode(dict(spec))
    observed = NodeScheduling(name="n1", is_cordoned=bool(spec.get("unschedulable")))
    plan, run = node.drain(*(plan_uncordon(observed, "") if is_back else ()))
    assert node.spec == (spec if is_back else {**spec, "unschedulable": True})
    for step in plan_undo(plan, run.record, node.observers, run.kept).steps:
        assert isinstance(step.action, PatchObject)
        node.patch(step.action)
    assert node.spec == spec


def test_gate_is_the_one_of_the_drain() -> None:
    *_, last = plan_drain(FREE, "", DrainSettings(timeout_s=5))
    assert isinstance(last.action, AwaitGate)
    assert last.action.gate == NodeDrained(node_name="n1", timeout_s=5)
