"""What an upgrade was planned from is looked at again once it holds the Lease: it may have waited for another node."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from garboard.documents import Json
from garboard.engine import Observation
from garboard.host.node_machine import NodeMachine
from garboard.node.observations import ObservedObjects
from garboard.node.upgrade import APPLY_WORKFLOW, NODE_WORKFLOW, recheck
from garboard.node.workflow import ChangedMeanwhile, LocalNode
from garboard.phases.upgrade.context import UpgradeContext
from garboard.retry import Clock
from tests.support.node.reporters import MemoryReporter
from tests.support.phases.upgraded_nodes import FORMER, TARGET, upgraded_node

OLD, NEW = (f"registry.k8s.io/kube-apiserver:{each}" for each in (FORMER, TARGET))
OTHERS = {"node-1": OLD, "node-2": NEW, "node-3": OLD}


@dataclass
class Cluster:
    """A cluster whose ConfigMaps have versions, and whose API servers have images, by node."""

    images: dict[str, str]
    maps: dict[str, str] = field(default_factory=lambda: {"kubeadm-config": "7", "kubelet-config": "8"})
    status: str = "1"
    seen: ObservedObjects = field(default_factory=ObservedObjects)

    def find(self, kind: str, namespace: str, name: str, *, api_version: str = "") -> dict[str, Json] | None:
        version = self.maps.get(name) if kind == "ConfigMap" else self.status
        content: dict[str, Json] | None = None if version is None else {"metadata": {"resourceVersion": version}}
        self.seen.remember(kind, namespace, name, content)
        return content

    def observed(self) -> tuple[Observation, ...]:
        return self.seen.observed()

    def labelled(self, _kind: str, _namespace: str, _selector: str) -> Sequence[dict[str, Json]]:
        return [
            {"spec": {"nodeName": node, "containers": [{"name": "kube-apiserver", "image": image}]}}
            for node, image in self.images.items()
        ]


def planned(cluster: Cluster) -> UpgradeContext:
    """Return a control plane whose upgrade was planned from a cluster."""
    for name in ("kubeadm-config", "kubelet-config", "garboard-patches"):
        cluster.find("ConfigMap", "kube-system", name)
    cluster.find("Deployment", "kube-system", "coredns")
    context = upgraded_node(others=("node-2", "node-3"), is_first=False)
    return replace(context, upgraded=replace(context.upgraded, api_servers=dict(cluster.images)))


@dataclass
class Waiting:
    """A clock; what happens while it is slept."""

    happens: Callable[[], None] = lambda: None
    seconds: float = 0.0

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds
        self.happens()


def look(context: UpgradeContext, cluster: Any, waited_s: float = 0.0, clock: Waiting | None = None) -> None:
    clock = clock or Waiting()
    node = LocalNode(NodeMachine(None), MemoryReporter())
    recheck(context, cluster, node, waited_s, Clock(lambda: clock.seconds, clock.sleep))
    assert waited_s or not clock.seconds, "nothing is waited for"


@pytest.fixture
def cluster() -> Cluster:
    return Cluster(dict(OTHERS))


def test_cluster_that_stays_as_it_was_is_fine(cluster: Cluster) -> None:
    look(planned(cluster), cluster)


def test_status_of_what_runs_may_change(cluster: Cluster) -> None:
    context = planned(cluster)
    cluster.status = "2"  # a pod that was evicted, for one
    look(context, cluster)


@pytest.mark.parametrize(
    ("maps", "told"),
    [
        ({"kubeadm-config": "9", "kubelet-config": "8"}, "kube-system/kubeadm-config has changed"),
        ({"kubeadm-config": "7"}, "kube-system/kubelet-config has gone"),
        ({"kubeadm-config": "7", "kubelet-config": "8", "garboard-patches": "1"}, "garboard-patches has been made"),
    ],
)
def test_configuration_that_somebody_has_edited_meanwhile_is_planned_from_again(
    cluster: Cluster, maps: dict[str, str], told: str
) -> None:
    context = planned(cluster)
    cluster.maps = maps
    with pytest.raises(ChangedMeanwhile, match=told):
        look(context, cluster)


def test_node_that_has_become_the_last_one_is_planned_again_with_the_addons(cluster: Cluster) -> None:
    """Two nodes that are upgraded at once would both leave the addons to the other."""
    context = planned(cluster)
    assert context.control_planes_left == ("node-3",)
    cluster.images["node-3"] = NEW
    with pytest.raises(ChangedMeanwhile, match="another control plane has changed its version"):
        look(context, cluster)


def test_pods_of_the_node_that_was_waited_for_may_follow_by_seconds(cluster: Cluster) -> None:
    context = planned(cluster)

    def follow() -> None:
        cluster.images["node-3"] = NEW

    with pytest.raises(ChangedMeanwhile):
        look(context, cluster, 9.0, Waiting(follow))


def test_nodes_that_are_still_to_come_are_not_waited_for_long(cluster: Cluster) -> None:
    clock = Waiting()
    look(planned(cluster), cluster, 9.0, clock)
    assert 10 < clock.seconds < 30


def test_last_node_waits_for_nobody(cluster: Cluster) -> None:
    cluster.images["node-3"] = NEW
    clock = Waiting()
    look(planned(cluster), cluster, 9.0, clock)
    assert clock.seconds == 0


def test_control_plane_that_has_joined_with_the_former_version_is_waited_for(cluster: Cluster) -> None:
    cluster.images["node-3"] = NEW
    context = planned(cluster)
    cluster.images["node-4"] = OLD
    with pytest.raises(ChangedMeanwhile):
        look(context, cluster)


def test_node_that_follows_another_one_while_more_are_to_come_goes_on(cluster: Cluster) -> None:
    cluster.images["node-2"] = OLD
    context = planned(cluster)
    cluster.images["node-2"] = NEW
    look(context, cluster)


def test_worker_asks_for_no_pods() -> None:
    worker = Cluster(images={})
    worker.labelled = None  # type: ignore[assignment,method-assign]
    look(replace(planned(worker), manifests={}), worker)


@pytest.mark.parametrize("workflow", [APPLY_WORKFLOW, NODE_WORKFLOW], ids=["apply", "node"])
def test_upgrades_look_again(workflow: Any) -> None:
    assert workflow.policy(None, None, None).looks_again
