"""Pods of a node that are selected are deleted, and waited for; those that replace them stay."""

from dataclasses import dataclass, field

import pytest

from garboard.documents import Json
from garboard.engine import DeletePods, StepContext
from garboard.node.interpreters.eviction import EvictionInterpreter, EvictionRefused
from garboard.retry import Clock

ACTION = DeletePods(node_name="w1", namespace="kube-system", selector=(("k8s-app", "kube-proxy"),), timeout_s=10.0)


def pod(name: str, uid: str, app: str = "kube-proxy", namespace: str = "kube-system") -> dict[str, Json]:
    return {"metadata": {"name": name, "namespace": namespace, "uid": uid, "labels": {"k8s-app": app}}}


@dataclass
class Pods:
    """The pods of a node; one that is deleted goes after so many looks, and its successor comes at once."""

    found: list[dict[str, Json]]
    looks: int = 2
    deleted: list[str] = field(default_factory=list)

    def pods_of(self, node_name: str) -> list[dict[str, Json]]:
        assert node_name == "w1"
        if self.deleted:
            self.looks -= 1
        return [each for each in self.found if self.looks > 0 or self._name(each) not in self.deleted]

    def evict(self, pod: dict[str, Json], grace_s: int | None) -> None:
        raise AssertionError("it is not evicted")

    def delete(self, pod_: dict[str, Json]) -> None:
        self.deleted.append(self._name(pod_))
        self.found.append(pod(f"{self._name(pod_)}-next", "9"))

    @staticmethod
    def _name(pod_: dict[str, Json]) -> str:
        metadata = pod_["metadata"]
        assert isinstance(metadata, dict)
        return str(metadata["name"])


def carry_out(pods: Pods) -> list[str]:
    told: list[str] = []
    elapsed_s = [0.0]

    def sleep(seconds: float) -> None:
        elapsed_s[0] += seconds

    EvictionInterpreter(pods, Clock(lambda: elapsed_s[0], sleep)).delete(
        ACTION, StepContext({}, told.append, lambda _facts: None, {})
    )
    return told


def test_only_the_selected_pods_go() -> None:
    pods = Pods([pod("p1", "1"), pod("dns", "2", app="kube-dns"), pod("p2", "3", namespace="default")])
    assert carry_out(pods) == []
    assert pods.deleted == ["p1"]


def test_a_pod_that_does_not_end_is_told() -> None:
    pods = Pods([pod("p1", "1")], looks=1000)
    with pytest.raises(EvictionRefused, match="Node w1: after 10 s p1 still ending"):
        carry_out(pods)


def test_where_there_is_no_such_pod_nothing_waits() -> None:
    assert carry_out(Pods([pod("dns", "2", app="kube-dns")])) == ["no such pod runs on this node"]
