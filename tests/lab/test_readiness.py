from typing import Any

from garboard.lab.readiness import missing_for_ready
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
