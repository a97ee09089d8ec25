from datetime import UTC, datetime
from typing import Any

import pytest

from garboard.lab.readiness import MIRROR, missing_for_ready, not_yet_restarted
from garboard.lab.topology import Bootstrap, plan_lab
from garboard.model import DEFAULT_VERSION

LAB = plan_lab("lab", DEFAULT_VERSION, Bootstrap.KUBEADM, control_planes=1, workers=1)


def item(kind: str, name: str, namespace: str | None = None, **status: Any) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"name": name, "namespace": namespace}, "status": status}


def condition(name: str, value: str) -> list[dict[str, str]]:
    return [{"type": name, "status": value}]


READY = [
    item("Node", "cp1", conditions=condition("Ready", "True")),
    item("Node", "worker1", conditions=condition("Ready", "True")),
    item("Deployment", "coredns", "kube-system", conditions=condition("Available", "True")),
    item("DaemonSet", "kube-proxy", "kube-system", numberAvailable=2),
]


def test_nothing_is_missing_when_nodes_dns_and_proxy_are_there() -> None:
    assert missing_for_ready({"items": READY}, LAB) == []


def test_each_missing_part_is_named() -> None:
    items = [
        item("Node", "cp1", conditions=condition("Ready", "False")),
        item("Deployment", "coredns", "kube-system", conditions=[]),
        item("DaemonSet", "kube-proxy", "kube-system"),
    ]
    assert missing_for_ready({"items": items}, LAB) == [
        "node cp1 is not Ready",
        "node worker1 is not Ready",
        "CoreDNS is not available",
        "kube-proxy runs on 0 of 2 nodes",
    ]


def test_add_ons_that_were_switched_off_are_not_waited_for() -> None:
    assert missing_for_ready({"items": READY[:2]}, LAB) == []


def test_a_deployment_of_the_same_name_elsewhere_does_not_count() -> None:
    other = item("Deployment", "coredns", "mine", conditions=condition("Available", "False"))
    assert missing_for_ready({"items": [*READY, other]}, LAB) == []


STARTED = datetime(2026, 11, 16, 12, 0, 0, tzinfo=UTC)
BEFORE, AFTER = "2026-11-16T11:59:59Z", "2026-11-16T12:00:00Z"


def reporting_node(at: str) -> dict[str, Any]:
    return item("Node", "cp1", conditions=[{"type": "Ready", "status": "True", "lastHeartbeatTime": at}])


def pod(at: str | None, *, ready: bool = True, static: bool = False, namespace: str = "kube-system") -> dict[str, Any]:
    state = {"running": {"startedAt": at}} if at else {"waiting": {}}
    found = item("Pod", "web", namespace, phase="Running", containerStatuses=[{"ready": ready, "state": state}])
    if static:
        found["metadata"]["annotations"] = {MIRROR: "hash"}
    return {**found, "spec": {"containers": [{"name": "web"}]}}


@pytest.mark.parametrize(
    ("listed", "missing"),
    [
        pytest.param(reporting_node(AFTER), [], id="node that has reported"),
        pytest.param(reporting_node(BEFORE), ["node cp1 has not reported yet"], id="words of its last moments"),
        pytest.param(pod(AFTER), [], id="pod that was started"),
        pytest.param(pod(BEFORE), ["pod web does not run yet"], id="pod of before"),
        pytest.param(pod(None), ["pod web does not run yet"], id="pod that waits"),
        pytest.param(pod(AFTER, ready=False), ["pod web does not run yet"], id="pod that is not ready"),
        pytest.param(pod(AFTER, ready=False, static=True), [], id="static pod that runs"),
        pytest.param(pod(BEFORE, static=True), ["pod web does not run yet"], id="static pod of before"),
        pytest.param(pod(BEFORE, namespace="default"), [], id="pod of a user"),
    ],
)
def test_only_what_is_newer_than_the_start_counts(listed: dict[str, Any], missing: list[str]) -> None:
    assert not_yet_restarted({"items": [listed]}, STARTED) == missing


def test_pods_that_are_done_or_go_are_not_waited_for() -> None:
    done, going = pod(BEFORE), pod(BEFORE)
    done["status"]["phase"] = "Succeeded"
    going["metadata"]["deletionTimestamp"] = BEFORE
    assert not_yet_restarted({"items": [done, going]}, STARTED) == []
