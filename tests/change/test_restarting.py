"""Components restart as they are: gated, under the Lease where they are static pods, and nothing is written anew."""

import pytest

from garboard.change.restarting import RESTARTABLE, restart_plan
from garboard.engine import AcquireLease, DeletePods, WriteFile, refuse_units
from garboard.errors import BadUsage, NotReady
from garboard.phases.static_pods import ORDER
from tests.support.change.snapshots import f2


@pytest.mark.parametrize("component", RESTARTABLE)
def test_it_restarts_and_what_is_on_disk_stays(component: str) -> None:
    snapshot = f2(is_seen=True)
    plan = restart_plan(component, snapshot, "cp2")
    restarted = {name for step in plan.steps for name in step.restarts}
    assert restarted == ({"etcd", "kube-apiserver"} if component == "etcd" else {component})
    node = snapshot.node("cp2")
    assert node is not None
    written = {step.action.path: step.action.content.decode() for step in plan.steps
               if isinstance(step.action, WriteFile)}  # fmt: skip
    manifests = node.manifests or {}
    assert written == {f"/etc/kubernetes/manifests/{name}.yaml": manifests[name] for name in restarted & set(ORDER)}
    assert {step.node for step in plan.steps} == {"cp2"}
    assert all(step.phase for step in plan.steps)
    assert isinstance(plan.steps[0].action, AcquireLease) is (component in ORDER)
    refuse_units(plan)


def test_kube_proxy_gets_another_pod() -> None:
    (deleted,) = (s.action for s in restart_plan("kube-proxy", f2(), "w1").steps if isinstance(s.action, DeletePods))
    assert deleted.node_name == "w1"


def test_what_is_no_component_or_not_there_is_told() -> None:
    with pytest.raises(BadUsage, match="nginx is no component"):
        restart_plan("nginx", f2(is_seen=True), "cp1")
    with pytest.raises(NotReady, match="w1 has no static pod etcd"):
        restart_plan("etcd", f2(is_seen=True), "w1")
    with pytest.raises(NotReady, match="w9 is no node of the cluster"):
        restart_plan("kubelet", f2(), "w9")
