"""The order of join, with KEP-4471 and without."""

import pytest

from garboard.model.cluster import ClusterConfiguration
from garboard.model.lifecycle import JoinConfiguration, JoinControlPlane, TokenDiscovery
from garboard.model.minors import LOCAL_MODE_GATE
from garboard.model.node import NodeRegistration
from garboard.phases import plan_workflow, select
from garboard.phases.join import JOIN
from garboard.phases.join.context import JoinContext


def order(*, is_control_plane: bool, gates: dict[str, bool] | None = None) -> list[str]:
    config = JoinConfiguration(
        discovery=TokenDiscovery(token="abcdef.0123456789abcdef", api_server_endpoint="192.0.2.1:6443"),
        node_registration=NodeRegistration(name="node-2"),
        control_plane=JoinControlPlane() if is_control_plane else None,
    )
    cluster = ClusterConfiguration(feature_gates=gates or {})
    plan = plan_workflow(select(JOIN), JoinContext(config=config, cluster=cluster))
    return [step.phase for step in plan.steps]


@pytest.mark.parametrize("gates", [{}, {LOCAL_MODE_GATE: True}], ids=["default", "gate on"])
def test_etcd_joins_between_the_start_of_the_kubelet_and_the_wait_for_it(gates: dict[str, bool]) -> None:
    found = order(is_control_plane=True, gates=gates)
    assert found[-6:] == [
        "check-etcd", "kubelet-start", "etcd-join", "kubelet-wait-bootstrap",
        "control-plane-join/mark-control-plane", "wait-control-plane",
    ]  # fmt: skip


def test_with_the_gate_off_etcd_joins_within_control_plane_join() -> None:
    found = order(is_control_plane=True, gates={LOCAL_MODE_GATE: False})
    assert found[-5:] == [
        "check-etcd", "kubelet-start", "control-plane-join/etcd", "control-plane-join/mark-control-plane",
        "wait-control-plane",
    ]  # fmt: skip


def test_worker_only_starts_its_kubelet() -> None:
    assert order(is_control_plane=False) == ["preflight", "kubelet-start", "kubelet-wait-bootstrap"]


def test_every_phase_of_join_says_what_is_missing() -> None:
    assert all(each.phase.plan is not None or each.phase.children for each in select(JOIN))
