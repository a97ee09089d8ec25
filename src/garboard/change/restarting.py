"""A component of a node that is started again as it is, with the gates of a change."""

from collections.abc import Iterator
from dataclasses import replace

from garboard.change.configuration import read_configuration
from garboard.change.engine_plan import etcd_url, proxy_steps, restart_kubelet
from garboard.change.objects import health_url
from garboard.change.rollout import under_lease
from garboard.change.snapshot import ClusterSnapshot, SnapshotNode
from garboard.engine import Plan, Step
from garboard.errors import BadUsage, NotReady
from garboard.manifests.etcd import PEER_PORT
from garboard.phases.control_plane_lease import ACQUIRED_WITHIN_S
from garboard.phases.static_pods import ORDER, UNIT, ReplacedPod, SwapSettings, plan_swap

KUBELET, KUBE_PROXY = "kubelet", "kube-proxy"
RESTARTABLE = (*ORDER, KUBELET, KUBE_PROXY)
_CAUSE = "it was asked for: a file that it reads only at its start has changed"


def restart_plan(component: str, snapshot: ClusterSnapshot, name: str) -> Plan:
    """Return the steps that restart a component of a node, whose files the snapshot has."""
    if component not in RESTARTABLE:
        raise BadUsage(f"{component} is no component", hint=f"it is one of {', '.join(RESTARTABLE)}")
    node = snapshot.node(name)
    if node is None:
        raise NotReady(f"{name} is no node of the cluster", hint="kubectl get nodes")
    if component in ORDER:
        return Plan(under_lease([*_swapped(component, node, snapshot)], name, ACQUIRED_WITHIN_S))
    steps = _proxy(node, snapshot) if component == KUBE_PROXY else restart_kubelet(node, _CAUSE)
    return Plan(tuple(replace(each, node=name, phase=each.phase or component) for each in steps))


def _swapped(component: str, node: SnapshotNode, snapshot: ClusterSnapshot) -> Iterator[Step]:
    manifests = node.manifests or {}
    if component not in manifests:
        raise NotReady(f"{node.name} has no static pod {component}", hint="ls /etc/kubernetes/manifests")
    pods = [
        ReplacedPod(
            component=each, former=text.encode(), manifest=text.encode(),
            restart_cause=_CAUSE if each == component else "",
        )
        for each, text in manifests.items()
    ]  # fmt: skip
    voters = sum(not each.is_learner for each in snapshot.members or ())
    settings = SwapSettings(member_url=etcd_url(node, int(PEER_PORT)), voters=voters)
    for step in plan_swap(pods, node.name, _CAUSE, settings):
        yield replace(step, phase=UNIT)


def _proxy(node: SnapshotNode, snapshot: ClusterSnapshot) -> Iterator[Step]:
    has_map = KUBE_PROXY in snapshot.config_maps
    yield from proxy_steps(node, _CAUSE, health_url(read_configuration(snapshot)) if has_map else "")
