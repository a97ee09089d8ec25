"""A change that is carried to all nodes from one machine is planned again where its plan was stale before it began."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from garboard.change.document import plan_document
from garboard.change.outcomes import IS_DONE, ChangeBlocked, ChangeStale
from garboard.change.plan import ChangePlan
from garboard.change.saved_plan import SavedPlan
from garboard.engine import Observation
from garboard.errors import ClusterUnreachable, GarboardError
from garboard.host.node_machine import NodeMachine
from garboard.node.change_apply import ApplyRequest
from garboard.node.change_apply_via import PlannedChange, carry_out_planned
from garboard.node.coordinator import CoordinatorStopped
from garboard.node.workflow import LocalNode
from tests.support.change.requests import sets
from tests.support.change.rollouts import rollout
from tests.support.change.snapshots import f1
from tests.support.node.reporters import MemoryReporter

TYPED = "scheduler.extraArgs[v]=1"
PLANNED = PlannedChange(rollout(f1(), TYPED), b"first")
OTHER = PlannedChange(rollout(f1(), "scheduler.extraArgs[v]=2"), b"other")
STALE = ChangeStale("cp1 has failed: it ended with status 16")
DONE = "[change apply] revision 1 is done on all nodes"
NOTHING_TO_DO = "[change apply] nothing to do: the cluster is as it is asked for"
AGAIN = "[change apply] the plan is stale on cp1: planning again"


def moved(handed: str) -> PlannedChange:
    """Return a plan that does the same, made from something else."""
    plan = replace(PLANNED.rollout.plan, observed=(Observation("nodes", handed),))
    return PlannedChange(replace(PLANNED.rollout, plan=plan), handed.encode())


def of_plan(planned: PlannedChange, plan: ChangePlan) -> PlannedChange:
    return PlannedChange(replace(planned.rollout, plan=plan), b"another")


class Nodes:
    """Nodes that stop a change a few times; `again` is what is found when it is planned again: a plan, or an error."""

    def __init__(
        self, *again: PlannedChange | GarboardError, stops: Sequence[GarboardError] = (STALE,), answers: str = ""
    ) -> None:
        self.again, self.stops = [*again], [*stops]
        self.told: list[bytes] = []
        self.reporter = MemoryReporter(answers=[*answers])

    def carry_out(self, planned: PlannedChange) -> None:
        self.told.append(planned.handed)
        if self.stops:
            raise self.stops.pop(0)

    def plan_again(self) -> PlannedChange:
        found = self.again.pop(0)
        if isinstance(found, GarboardError):
            raise found
        return found

    def carried_out(self, asked: ApplyRequest | None = None) -> int:
        local = LocalNode(NodeMachine(None), self.reporter)
        asked = asked or ApplyRequest(request=sets(TYPED))
        return carry_out_planned(asked, PLANNED, self.carry_out, self.plan_again, local)

    @property
    def questions(self) -> int:
        return sum("Are you sure" in line for line in self.reporter.lines)


def test_plan_that_holds_is_made_once() -> None:
    nodes = Nodes(stops=())
    assert nodes.carried_out() == IS_DONE
    assert (nodes.told, nodes.reporter.lines) == ([b"first"], [DONE])


def test_plan_that_is_stale_is_made_again_and_nothing_is_asked_where_the_work_is_the_same() -> None:
    nodes = Nodes(moved("second"), moved("third"), stops=(STALE, STALE))
    assert nodes.carried_out() == IS_DONE
    assert nodes.told == [b"first", b"second", b"third"]
    assert nodes.reporter.lines == [AGAIN, AGAIN, DONE]


def test_plan_that_does_something_else_by_now_is_confirmed() -> None:
    nodes = Nodes(OTHER, answers="y")
    assert nodes.carried_out() == IS_DONE
    assert (nodes.told, nodes.questions) == ([b"first", b"other"], 1)
    assert any("scheduler.extraArgs[v]: (not set) -> 2" in line for line in nodes.reporter.lines)


def test_plan_that_was_confirmed_last_is_what_the_next_one_is_compared_with() -> None:
    same = PlannedChange(OTHER.rollout, b"other again")
    nodes = Nodes(OTHER, same, stops=(STALE, STALE), answers="y")
    assert nodes.carried_out() == IS_DONE
    assert (nodes.told, nodes.questions) == ([b"first", b"other", b"other again"], 1)


def test_plan_that_does_something_else_is_not_carried_out_unless_it_is_confirmed() -> None:
    nodes = Nodes(OTHER, answers="n")
    with pytest.raises(GarboardError, match="the change was not confirmed"):
        nodes.carried_out()
    assert nodes.told == [b"first"]


def test_change_that_somebody_else_has_made_meanwhile_ends_with_nothing_to_do() -> None:
    nodes = Nodes(of_plan(PLANNED, ChangePlan()))
    assert nodes.carried_out() == IS_DONE
    assert (nodes.told, nodes.reporter.lines) == ([b"first"], [AGAIN, NOTHING_TO_DO])


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
    nodes = Nodes(moved("second"), stops=(stop,))
    with pytest.raises(type(stop)) as raised:
        nodes.carried_out()
    assert raised.value is stop
    assert (nodes.told, nodes.reporter.lines) == ([b"first"], [])


def test_plan_that_was_saved_is_never_made_again() -> None:
    nodes = Nodes(moved("second"))
    with pytest.raises(ChangeStale):
        nodes.carried_out(ApplyRequest(saved=SavedPlan(plan_document(PLANNED.rollout.plan))))
    assert (nodes.told, nodes.reporter.lines) == ([b"first"], [])


def test_plan_that_was_saved_is_carried_out() -> None:
    nodes = Nodes(stops=())
    assert nodes.carried_out(ApplyRequest(saved=SavedPlan(plan_document(PLANNED.rollout.plan)))) == IS_DONE
    assert (nodes.told, nodes.reporter.lines) == ([b"first"], [DONE])


def test_plan_that_is_the_same_again_is_not_tried_again() -> None:
    nodes = Nodes(moved("first"))
    with pytest.raises(ChangeStale) as raised:
        nodes.carried_out()
    assert raised.value is STALE
    assert nodes.told == [b"first"]


def test_plan_that_moves_without_an_end_is_given_up() -> None:
    nodes = Nodes(moved("second"), moved("third"), moved("fourth"), stops=[STALE] * 9)
    with pytest.raises(ChangeStale):
        nodes.carried_out()
    assert nodes.told == [b"first", b"second", b"third"]


def test_error_of_planning_again_leads_back_to_the_stop() -> None:
    nodes = Nodes(ClusterUnreachable("cp1:6443 does not answer"))
    with pytest.raises(ClusterUnreachable) as raised:
        nodes.carried_out()
    assert raised.value.__cause__ is STALE
    assert nodes.reporter.lines == [AGAIN]


def test_error_of_planning_again_keeps_its_own_cause_and_that_leads_back_to_the_stop() -> None:
    class Unreachable(Nodes):
        def plan_again(self) -> PlannedChange:
            try:
                raise ConnectionRefusedError
            except ConnectionRefusedError as error:
                raise ClusterUnreachable("cp1:6443 does not answer") from error

    with pytest.raises(ClusterUnreachable) as raised:
        Unreachable().carried_out()
    assert isinstance(raised.value.__cause__, ConnectionRefusedError)
    assert raised.value.__cause__.__context__ is STALE
