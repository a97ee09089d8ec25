"""The order of nodes, and the commands that upgrade each of them."""

import pytest

from garboard.phases.upgrade.cluster import ClusterNode
from garboard.phases.upgrade.nodes import cluster_plan_text, in_order, plan_cluster


def node(name: str, *, is_control_plane: bool = True) -> ClusterNode:
    return ClusterNode(name, is_control_plane, is_ready=True, kubelet=None)


NODES = [node("w1", is_control_plane=False), node("b"), node("a0", is_control_plane=False), node("c"), node("a")]


@pytest.mark.parametrize(
    ("first", "order"),
    [
        pytest.param("", ["a", "b", "c", "a0", "w1"], id="by name"),
        pytest.param("c", ["c", "a", "b", "a0", "w1"], id="this one first"),
        pytest.param("w1", ["a", "b", "c", "w1", "a0"], id="a worker is never the first"),
        pytest.param("elsewhere", ["a", "b", "c", "a0", "w1"], id="a machine that is no node"),
    ],
)
def test_control_planes_come_before_workers(first: str, order: list[str]) -> None:
    assert [each.name for each in in_order(NODES, first)] == order


def test_first_node_applies_and_the_others_follow() -> None:
    plan = plan_cluster(NODES, "v1.37.1", ["--force"], ["--etcd-upgrade=false"], first="b")
    assert plan.nodes == ("b", "a", "c", "a0", "w1")
    assert cluster_plan_text(plan) == (
        "1. b: garboard upgrade apply v1.37.1 --yes --force\n"
        "2. a: garboard upgrade node --etcd-upgrade=false\n"
        "3. c: garboard upgrade node --etcd-upgrade=false\n"
        "4. a0: garboard upgrade node --etcd-upgrade=false\n"
        "5. w1: garboard upgrade node --etcd-upgrade=false\n"
    )
