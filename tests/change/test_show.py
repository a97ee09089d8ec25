"""Plans as they are shown: two that do the same are shown alike, whatever they were made from."""

from dataclasses import replace

from garboard.change.plan import ChangePlan, NodeChange
from garboard.change.show import is_shown_alike, plan_text
from garboard.engine import Observation
from tests.support.change.requests import planned
from tests.support.change.snapshots import f1, f2


def test_what_a_plan_was_made_from_does_not_count() -> None:
    plan = planned(f1(), "scheduler.extraArgs[v]=1")
    since = replace(plan, observed=(*plan.observed, Observation("since", "1")))
    assert plan_text(plan) != plan_text(since)
    assert is_shown_alike(plan, since)


def test_other_work_counts() -> None:
    plan = planned(f1(), "scheduler.extraArgs[v]=1")
    assert not is_shown_alike(plan, planned(f1(), "scheduler.extraArgs[v]=2"))
    assert not is_shown_alike(plan, ChangePlan())


def test_each_of_many_nodes_counts_though_only_the_first_and_the_last_are_named() -> None:
    plan = planned(f2(workers=tuple(f"w{number}" for number in range(9))), "KubeletConfiguration:maxPods=250")
    parts = [
        replace(each, node="w4-again") if isinstance(each, NodeChange) and each.node == "w4" else each
        for each in plan.parts
    ]
    other = replace(plan, parts=tuple(parts))
    assert "w4" not in plan_text(plan)
    assert not is_shown_alike(plan, other)
