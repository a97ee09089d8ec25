"""What becomes of flags that somebody has typed into a manifest which a change replaces (S16)."""

from dataclasses import replace

import pytest

from garboard.change.following import parts_of, plan_following
from garboard.change.node_work import DriftPolicy, PlanOptions
from garboard.change.plan import ChangePlan
from garboard.change.planning import plan_change
from garboard.change.rollout import Rollout
from garboard.change.snapshot import ClusterSnapshot
from tests.support.change.applying import applied
from tests.support.change.requests import codes, planned, restarts, sets
from tests.support.change.rollouts import begun, rollout
from tests.support.change.snapshots import MadeUpCluster, f2, f4

EDIT = "apiServer.extraArgs[event-ttl]=2h"
SEEN = pytest.mark.parametrize("is_seen", [False, True], ids=["by the mirror pod", "by the manifest"])


def under(snapshot: ClusterSnapshot, drift: DriftPolicy, edit: str = EDIT) -> ChangePlan:
    return plan_change(snapshot, sets(edit), options=PlanOptions(drift=drift))


def manifest(plan: ChangePlan) -> str:
    content = plan.nodes[0].steps[0].files[0].content
    assert content is not None
    return content.decode()


@SEEN
@pytest.mark.parametrize(
    ("drift", "verdict", "on_node", "stored"),
    [("fail", "blocked", None, None), ("keep", "advice", True, False), ("adopt", "allowed", True, True),
     ("overwrite", "allowed", False, False)],
)  # fmt: skip
def test_a_typed_in_flag_stops_stays_is_recorded_or_goes(
    drift: DriftPolicy, verdict: str, *, on_node: bool | None, stored: bool | None, is_seen: bool
) -> None:
    plan = under(f4(is_seen=is_seen), drift)
    assert plan.verdict == verdict
    if on_node is None:
        assert plan.parts == ()
        return
    assert restarts(plan) == {"cp1": ["kube-apiserver"]}
    assert "--event-ttl=2h" in manifest(plan)
    assert ("--profiling=false" in manifest(plan)) is on_node
    assert ("profiling" in dict(plan.objects[0].data)["ClusterConfiguration"]) is stored


@SEEN
@pytest.mark.parametrize("drift", ["keep", "adopt", "overwrite"])
def test_afterwards_there_is_nothing_to_do(drift: DriftPolicy, *, is_seen: bool) -> None:
    snapshot = f4(is_seen=is_seen)
    after = applied(snapshot, under(snapshot, drift))
    assert under(after, drift).verdict == "none"


@pytest.mark.parametrize("drift", ["keep", "adopt", "overwrite"])
def test_where_nobody_has_typed_anything_no_policy_changes_a_plan(drift: DriftPolicy) -> None:
    for edit in (EDIT, "etcd.local.extraArgs[snapshot-count]=20000"):
        assert under(f2(is_seen=True), drift, edit).parts == under(f2(is_seen=True), "fail", edit).parts


def test_what_is_asked_for_differently_is_a_conflict_unless_it_is_overwritten() -> None:
    edit = "apiServer.extraArgs[profiling]=true"
    for drift in ("fail", "keep", "adopt"):
        assert "conflicting-edit" in codes(under(f4(is_seen=True), drift, edit))
    overwritten = under(f4(is_seen=True), "overwrite", edit)
    assert "--profiling=true" in manifest(overwritten)
    assert "--profiling=false" not in manifest(overwritten)


def test_flags_that_control_planes_do_not_agree_on_are_not_adopted() -> None:
    values = {"cp1": "1", "cp2": "2"}

    def typed(node: str, component: str, text: str) -> str:
        if component != "kube-apiserver" or node not in values:
            return text
        return text.replace(
            "    - --allow-privileged=true\n", f"    - --allow-privileged=true\n    - --v={values[node]}\n"
        )

    snapshot = MadeUpCluster(
        control_planes=("cp1", "cp2", "cp3"), change_manifest=typed, is_seen=True
    ).snapshot()  # fmt: skip
    assert codes(under(snapshot, "adopt")) == ["hand-edit", "hand-edit"]


def test_the_nodes_that_follow_do_the_same() -> None:
    snapshot = MadeUpCluster(
        control_planes=("cp1", "cp2"), workers=(), is_seen=True,
        change_manifest=lambda _node, component, text: text.replace(
            "    - --allow-privileged=true\n", "    - --allow-privileged=true\n    - --v=7\n"
        ) if component == "kube-apiserver" else text,
    ).snapshot()  # fmt: skip
    for drift in ("keep", "adopt", "overwrite"):
        begins = rollout(snapshot, EDIT, "hand-edit")
        plan = under(snapshot, drift)
        record = begun(with_policy(begins, plan, drift))
        assert record.target is not None
        own = parts_of(plan_following(snapshot, record, record.target, "cp2"), "cp2")
        files = [file.content for part in own for step in part.steps for file in step.files]
        expected = [f.content for part in parts_of(plan, "cp2") for step in part.steps for f in step.files]
        assert files == expected
        assert (b"--v=7" in (files[0] or b"")) is (drift != "overwrite")


def with_policy(begins: Rollout, plan: ChangePlan, drift: str) -> Rollout:
    accepted = ("hand-edit",) if drift == "keep" else ()
    return replace(begins, plan=plan, intent=replace(begins.intent, drift=drift, accepted=accepted))  # type: ignore[arg-type]


def test_the_policy_is_not_needed_where_a_component_is_not_replaced() -> None:
    assert planned(f4(is_seen=True), "scheduler.extraArgs[v]=1").verdict == "allowed"
