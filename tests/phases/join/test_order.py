"""The order of join, with KEP-4471 and without."""

import pytest

from garboard.phases import plan_workflow, select
from garboard.phases.join import JOIN
from tests.phases.join.clusters import CONTROL_PLANE, MemoryCluster, context_of
from tests.phases.join.clusters import JOIN as JOIN_TEXT
from tests.phases.machines import MemoryMachine

GATE = "featureGates: {ControlPlaneKubeletLocalMode: %s}"


def order(*, is_control_plane: bool, more: str = "") -> list[str]:
    text = JOIN_TEXT + (CONTROL_PLANE if is_control_plane else "")
    context = context_of(MemoryCluster.made(more=more), MemoryMachine(services=set()), text)
    steps = plan_workflow(select(JOIN), context).steps
    return list(dict.fromkeys(step.phase for step in steps))


@pytest.mark.parametrize("more", ["", GATE % "true"], ids=["default", "gate on"])
def test_etcd_joins_between_the_start_of_the_kubelet_and_the_wait_for_it(more: str) -> None:
    assert order(is_control_plane=True, more=more)[-6:] == [
        "check-etcd", "kubelet-start", "etcd-join", "kubelet-wait-bootstrap",
        "control-plane-join/mark-control-plane", "wait-control-plane",
    ]  # fmt: skip


def test_with_the_gate_off_etcd_joins_within_control_plane_join() -> None:
    assert order(is_control_plane=True, more=GATE % "false")[-5:] == [
        "check-etcd", "kubelet-start", "control-plane-join/etcd", "control-plane-join/mark-control-plane",
        "wait-control-plane",
    ]  # fmt: skip


def test_worker_only_starts_its_kubelet() -> None:
    assert order(is_control_plane=False) == ["kubelet-start", "kubelet-wait-bootstrap"]
