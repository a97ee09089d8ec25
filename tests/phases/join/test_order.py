"""The order of join, with KEP-4471 and without."""

import pytest

from garboard.engine import AwaitGate, ControlService, Issue, Step
from garboard.model.cluster import ClusterConfiguration
from garboard.model.component import ExternalEtcd
from garboard.phases import plan_workflow, select
from garboard.phases.join import JOIN
from garboard.phases.node.credentials import joining_keys
from garboard.pki import KeyAlgorithm
from tests.support.phases.join.clusters import CONTROL_PLANE, MemoryCluster, context_of
from tests.support.phases.join.clusters import JOIN as JOIN_TEXT
from tests.support.phases.machines import MemoryMachine

GATE = "featureGates: {ControlPlaneKubeletLocalMode: %s}"


def steps_of(text: str, *, more: str = "", has_services: bool = True) -> tuple[Step, ...]:
    machine = MemoryMachine(services=set() if has_services else None)
    return plan_workflow(select(JOIN), context_of(MemoryCluster.made(more=more), machine, text)).steps


def order(*, is_control_plane: bool, more: str = "") -> list[str]:
    steps = steps_of(JOIN_TEXT + (CONTROL_PLANE if is_control_plane else ""), more=more)
    return list(dict.fromkeys(step.phase for step in steps))


def restarts(steps: tuple[Step, ...]) -> list[ControlService]:
    actions = (step.action for step in steps)
    return [each for each in actions if isinstance(each, ControlService) and each.verb == "restart"]


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


def test_kubelet_tries_anew_once_its_own_api_server_answers() -> None:
    steps = steps_of(JOIN_TEXT + CONTROL_PLANE)
    (restart,) = restarts(steps)
    assert restart.unless == "/var/lib/kubelet/pki/kubelet-client-current.pem"
    waiting = [step.action for step in steps if step.phase == "kubelet-wait-bootstrap"]
    before, after = waiting[: waiting.index(restart)], waiting[waiting.index(restart) + 1 :]
    assert [each.gate.name for each in before if isinstance(each, AwaitGate)][-1] == "a healthy kube-apiserver"
    assert [each.gate.name for each in after if isinstance(each, AwaitGate)] == ["the kubelet's own certificate"]


def test_certificate_is_looked_for_where_the_kubelet_keeps_it() -> None:
    text = f"{JOIN_TEXT}{CONTROL_PLANE}nodeRegistration: {{kubeletExtraArgs: [{{name: cert-dir, value: /srv/pki}}]}}\n"
    (restart,) = restarts(steps_of(text))
    assert restart.unless == "/srv/pki/kubelet-client-current.pem"


def test_others_are_not_started_again() -> None:
    """A worker and, with the gate off, a control plane find an API server at their first try."""
    assert not restarts(steps_of(JOIN_TEXT))
    assert not restarts(steps_of(JOIN_TEXT + CONTROL_PLANE, more=GATE % "false"))
    assert not restarts(steps_of(JOIN_TEXT + CONTROL_PLANE, has_services=False))


@pytest.mark.parametrize(("phases", "count"), [(("certs", "kubeconfig"), 10), (("kubeconfig",), 3), ((), 0)])
def test_keys_that_can_be_made_ahead_are_as_many_as_are_issued(phases: tuple[str, ...], count: int) -> None:
    context = context_of(MemoryCluster.made(), MemoryMachine(), JOIN_TEXT + CONTROL_PLANE)
    assert joining_keys(context.cluster, phases) == [KeyAlgorithm.ECDSA_P256] * count
    paths = [f"control-plane-prepare/{name}" for name in phases]
    steps = plan_workflow(select(JOIN), context).steps
    assert sum(isinstance(step.action, Issue) and step.phase in paths for step in steps) == count


def test_external_etcd_needs_no_keys_of_ours() -> None:
    cluster = ClusterConfiguration(etcd=ExternalEtcd(endpoints=("https://192.0.2.9:2379",)))
    assert len(joining_keys(cluster, ("certs", "kubeconfig"))) == 6
