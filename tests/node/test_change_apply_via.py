"""A change that is carried to all nodes from one machine is planned again where its plan has moved before it began."""

from dataclasses import replace

import pytest

from garboard.change.outcomes import ChangeBlocked, ChangeStale
from garboard.errors import GarboardError
from garboard.node.change_apply_via import PlannedChange, begin_planned
from garboard.node.coordinator import CoordinatorStopped
from tests.support.change.rollouts import rollout
from tests.support.change.snapshots import f1

PLANNED = PlannedChange(rollout(f1(), "scheduler.extraArgs[v]=1"), b"first")
STALE = ChangeStale("cp1 has failed: it ended with status 16")


class Nodes:
    """Nodes whose first one begins nothing a few times; plans that are made again are those given."""

    def __init__(self, refusals: int, *handed: bytes, stop: GarboardError = STALE) -> None:
        self.refusals, self.stop = refusals, stop
        self.plans = [replace(PLANNED, handed=each) for each in handed]
        self.told: list[bytes] = []

    def carry_out(self, planned: PlannedChange) -> None:
        self.told.append(planned.handed)
        if len(self.told) <= self.refusals:
            raise self.stop

    def plan_again(self) -> PlannedChange:
        return self.plans.pop(0)

    def begin(self) -> PlannedChange:
        return begin_planned(PLANNED, self.carry_out, self.plan_again)


def test_plan_that_has_moved_is_made_again() -> None:
    nodes = Nodes(2, b"second", b"third")
    assert nodes.begin().handed == b"third"
    assert nodes.told == [b"first", b"second", b"third"]


def test_plan_that_is_the_same_again_is_not_tried_again() -> None:
    nodes = Nodes(1, b"first")
    with pytest.raises(ChangeStale):
        nodes.begin()
    assert nodes.told == [b"first"]


def test_plan_that_moves_without_an_end_is_given_up() -> None:
    nodes = Nodes(9, b"second", b"third", b"fourth")
    with pytest.raises(ChangeStale):
        nodes.begin()
    assert nodes.told == [b"first", b"second", b"third"]


def test_plan_that_holds_is_made_once() -> None:
    nodes = Nodes(0)
    assert nodes.begin() is PLANNED


@pytest.mark.parametrize(
    "stop",
    [
        pytest.param(CoordinatorStopped("cp1 has failed: it ended with status 1"), id="sudo has refused"),
        pytest.param(CoordinatorStopped("cp1 has failed: it ended with status 127"), id="garboard is not there"),
        pytest.param(CoordinatorStopped("cp1 is unknown: the connection failed"), id="it fell silent"),
        pytest.param(ChangeBlocked("cp1 has failed: it ended with status 11"), id="it is blocked"),
    ],
)
def test_no_other_stop_has_it_planned_again(stop: GarboardError) -> None:
    nodes = Nodes(1, b"second", stop=stop)
    with pytest.raises(type(stop)):
        nodes.begin()
    assert nodes.told == [b"first"]
