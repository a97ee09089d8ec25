"""Cluster plans as values, and plans that were meant for another node."""

import pytest

from garboard.engine import (
    ClusterPart,
    ClusterPlan,
    DeleteObject,
    Executor,
    NodePart,
    Plan,
    PlanRefused,
    Step,
    WriteFile,
    cluster_plan_as_json,
    cluster_plan_as_text,
)
from garboard.node.interpreters import interpreters_over
from tests.support.engine.actions import MemoryFiles
from tests.support.engine.runs import CODEC


def writing(node: str) -> Plan:
    return Plan((Step(WriteFile(path="/etc/a", content=b"a", mode=0o600), "it changed", "files", node),))


DELETED = Plan((Step(DeleteObject(api_version="v1", kind="ConfigMap", name="a", namespace="b"), "it is old"),))
PLAN = ClusterPlan(
    (
        NodePart(node="cp-1", words=("change", "node"), plan=writing("cp-1"), stdin=b"s3cret"),
        ClusterPart(name="kubeadm-config", plan=DELETED),
        NodePart(node="cp-2", words=("change", "node"), plan=writing("cp-2")),
    )
)


def test_cluster_plan_is_kept_value_for_value() -> None:
    assert CODEC.decode(CODEC.encode(PLAN)) == PLAN
    assert PLAN.nodes == ("cp-1", "cp-2")


def test_cluster_plan_is_shown_in_its_order_and_without_secrets() -> None:
    text = cluster_plan_as_text(PLAN)
    heads = [line for line in text.splitlines() if not line.startswith(" ")]
    assert heads == ["1. cp-1: garboard change node", "2. kubeadm-config", "3. cp-2: garboard change node"]
    assert "    plan: 1 step on cp-2" in text
    document = cluster_plan_as_json(PLAN)
    assert isinstance(document, dict)
    assert [(each.get("node"), each.get("cluster")) for each in document["parts"]] == [  # type: ignore[union-attr]
        ("cp-1", None),
        (None, "kubeadm-config"),
        ("cp-2", None),
    ]
    assert "s3cret" not in text + str(document) + repr(PLAN)


def test_part_with_steps_of_another_node_is_named() -> None:
    assert list(PLAN.misplaced()) == []
    wrong = ClusterPlan(
        (NodePart(node="cp-1", words=(), plan=writing("cp-2")), ClusterPart(name="shared", plan=writing("cp-3")))
    )
    assert list(wrong.misplaced()) == ["cp-1 has steps for cp-2", "shared has steps for cp-3"]


@pytest.mark.parametrize("node", ["cp-1", ""], ids=["its name", "no name"])
def test_step_is_carried_out_on_its_own_node(node: str) -> None:
    files = MemoryFiles()
    executor = Executor(interpreters_over(files=files), node=node)
    executor.execute(writing("cp-1"))
    assert "/etc/a" in files.files


def test_step_of_another_node_is_refused_before_anything_is_done() -> None:
    files = MemoryFiles()
    plan = Plan((*writing("").steps, *writing("cp-2").steps))
    with pytest.raises(PlanRefused, match="this is node cp-1, and the plan has steps for cp-2") as caught:
        Executor(interpreters_over(files=files), node="cp-1").execute(plan)
    assert caught.value.error_class == "wrong-node"
    assert files.files == {}
