"""Pods evicted from a Node of a real API server, whose budgets a test sets as the controller would."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from garboard.documents import Json
from garboard.engine import EvictPods, PatchObject, StepContext
from garboard.kube import ApiRequest, ConnectionBroken, KubeClient, ObjectMissing, ObjectRef
from garboard.lab.binaries import Binaries
from garboard.node.interpreters.eviction import EvictionInterpreter, EvictionRefused, evict_pod
from garboard.node.interpreters.objects import patch_object
from garboard.phases.gates import NodeDrained
from garboard.phases.node.draining import DrainSettings, NodeScheduling, plan_drain, plan_uncordon
from garboard.retry import Clock
from tests.support.kube.real_server import real_api_server

pytestmark = pytest.mark.real
NODE = "worker-1"
OWNER: Json = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "1", "controller": True}]
DAEMON: Json = [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "2", "controller": True}]


@pytest.fixture(scope="module")
def client(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubeClient]:
    folder: Path = tmp_path_factory.mktemp("eviction")
    with real_api_server(binaries, "v1.37.1", folder) as access, KubeClient(access) as client:
        client.create(ref("ServiceAccount", "default"), _named("v1", "ServiceAccount", "default"))
        client.create(ObjectRef("Node", "", NODE), _named("v1", "Node", NODE))
        yield client


@pytest.fixture(autouse=True)
def without_pods(client: KubeClient) -> Iterator[None]:
    yield
    for kind in ("Pod", "PodDisruptionBudget"):
        for each in client.list_objects(kind, "default", api_version="" if kind == "Pod" else "policy/v1"):
            name = str(each["metadata"]["name"])  # type: ignore[call-overload,index]
            with suppress(ObjectMissing):
                options: Json = {"gracePeriodSeconds": 0}
                group = "/api/v1" if kind == "Pod" else "/apis/policy/v1"
                path = f"{group}/namespaces/default/{kind.lower()}s/{name}"
                client.send(ApiRequest(method="DELETE", path=path, what="clean up", content=options))


def ref(kind: str, name: str) -> ObjectRef:
    return ObjectRef(kind, "default", name)


def _named(api_version: str, kind: str, name: str, **more: Json) -> dict[str, Json]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **more}


def pod(client: KubeClient, name: str, owners: Json = OWNER, volumes: Json = None, node: str = NODE) -> None:
    content = _named("v1", "Pod", name)
    content["metadata"] = {"name": name, "labels": {"app": "web"}, "ownerReferences": owners or []}
    containers: Json = [{"name": "c", "image": "example.invalid/c:1"}]
    content["spec"] = {"nodeName": node, "containers": containers, "volumes": volumes or []}
    made = client.create(ref("Pod", name), content)
    # Budgets are for pods that run.
    status: Json = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    client.replace(ref("Pod", name), {**made, "status": status}, subresource="status")


def budget(client: KubeClient, allowed: int) -> None:
    name = "budget"
    held = client.find("PodDisruptionBudget", "default", name, api_version="policy/v1")
    of = ObjectRef("PodDisruptionBudget", "default", name, "policy/v1")
    if held is None:
        spec: Json = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
        held = client.create(of, _named("policy/v1", "PodDisruptionBudget", name, spec=spec))
    status: Json = {
        "observedGeneration": 1, "disruptionsAllowed": allowed,
        "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2,
    }  # fmt: skip
    client.replace(of, {**held, "status": status}, subresource="status")


class Pods:
    """The pods of the API server; a budget lets one go each time that a drain has paused."""

    def __init__(self, client: KubeClient) -> None:
        self.client = client

    def pods_of(self, node_name: str) -> tuple[dict[str, Json], ...]:
        return self.client.list_objects("Pod", fields=f"spec.nodeName={node_name}")

    def list_all(self, kind: str, *, fields: str = "") -> tuple[dict[str, Json], ...]:
        return self.client.list_objects(kind, fields=fields)

    def evict(self, pod: dict[str, Json], grace_s: int | None) -> None:
        evict_pod(self.client, pod, grace_s)

    def delete(self, pod: dict[str, Json]) -> None:
        raise AssertionError(f"{pod} is evicted, and not deleted")


class PodsBehindABreakingConnection(Pods):
    """The pods of an API server whose first answers to evictions are lost: before they are made, and after."""

    def __init__(self, client: KubeClient) -> None:
        super().__init__(client)
        self.asked = 0

    def evict(self, pod: dict[str, Json], grace_s: int | None) -> None:
        self.asked += 1
        if self.asked != 1:
            super().evict(pod, grace_s)
        if self.asked <= 2:
            raise ConnectionBroken("the API server broke the connection")


def names(client: KubeClient) -> set[str]:
    return {str(each["metadata"]["name"]) for each in client.list_all("Pod")}  # type: ignore[call-overload,index]


def evict(client: KubeClient, clock: Clock | None = None, timeout_s: float = 30.0, allowed: str = "") -> list[str]:
    told: list[str] = []
    action = EvictPods(node_name=NODE, timeout_s=timeout_s, grace_s=0, **{allowed: True} if allowed else {})
    run = StepContext({}, told.append, lambda _facts: None)
    EvictionInterpreter(Pods(client), clock or Clock()).evict(action, run)
    return told


def test_eviction_whose_answer_is_lost_is_asked_for_again(client: KubeClient) -> None:
    pod(client, "web")
    told: list[str] = []
    pods = PodsBehindABreakingConnection(client)
    action = EvictPods(node_name=NODE, timeout_s=30.0, grace_s=0)
    EvictionInterpreter(pods, Clock()).evict(action, StepContext({}, told.append, lambda _facts: None))
    assert names(client) == set()
    assert pods.asked == 2
    assert told == ["default/web stays for now: the API server broke the connection"]


def test_pods_go_but_those_of_daemon_sets_static_ones_and_other_nodes_stay(client: KubeClient) -> None:
    pod(client, "web")
    pod(client, "agent", DAEMON)
    pod(client, "elsewhere", node="worker-2")
    drained = NodeDrained(node_name=NODE, timeout_s=1)
    probe = drained.probe(Pods(client))  # type: ignore[arg-type]
    assert probe() == "1 pods are left: default/web"
    assert evict(client) == []
    assert names(client) == {"agent", "elsewhere"}
    assert probe() is None


def test_budget_is_obeyed_and_asked_again(client: KubeClient) -> None:
    pod(client, "web")
    budget(client, allowed=0)

    def pause(_seconds: float) -> None:
        budget(client, allowed=1)

    told = evict(client, Clock(sleep=pause))
    assert names(client) == set()
    assert len(told) == 1
    assert "default/web stays for now" in told[0]
    assert "disruption budget" in told[0]


def test_budget_that_never_lets_go_ends_with_the_deadline_and_the_pods(client: KubeClient) -> None:
    pod(client, "web")
    budget(client, allowed=0)
    with pytest.raises(EvictionRefused, match=r"not drained within 0 s: default/web stays for now"):
        evict(client, timeout_s=0.4)
    assert names(client) == {"web"}


@pytest.mark.parametrize(
    ("owners", "volumes", "problem", "allowed"),
    [
        ([], None, "nobody would make these pods again: default/odd", "deletes_unmanaged"),
        (OWNER, [{"name": "v", "emptyDir": {}}], "emptyDir volumes: default/odd", "deletes_empty_dirs"),
    ],
    ids=["nobody's", "with data"],
)
def test_pods_whose_end_would_lose_something_are_refused_before_the_first_goes(
    client: KubeClient, owners: Json, volumes: Json, problem: str, allowed: str
) -> None:
    pod(client, "web")
    pod(client, "odd", owners, volumes)
    with pytest.raises(EvictionRefused, match=problem):
        evict(client)
    assert names(client) == {"web", "odd"}
    evict(client, allowed=allowed)
    assert names(client) == set()


@pytest.mark.parametrize("is_cordoned", [False, True], ids=["in service", "cordoned by its owner"])
def test_node_is_drained_and_comes_back_as_its_owner_had_it(client: KubeClient, is_cordoned: bool) -> None:
    """The patches, with the real API server's idea of a merge."""
    node = ObjectRef("Node", "", NODE)
    client.patch(node, {"spec": {"unschedulable": True if is_cordoned else None}})
    pod(client, "web")
    found = NodeScheduling.read(client.require("Node", "", NODE))
    assert found.is_cordoned is is_cordoned
    drain = [step.action for step in plan_drain(found, "", DrainSettings(timeout_s=30, grace_s=0))]
    run = StepContext({}, print, lambda _facts: None)
    for each in drain:
        if isinstance(each, PatchObject):
            patch_object(client, each)
        elif isinstance(each, EvictPods):
            EvictionInterpreter(Pods(client)).evict(each, run)
    assert names(client) == set()
    assert NodeScheduling.read(client.require("Node", "", NODE)).is_cordoned
    for step in plan_uncordon(found, ""):
        assert isinstance(step.action, PatchObject)
        patch_object(client, step.action)
    assert NodeScheduling.read(client.require("Node", "", NODE)).is_cordoned is is_cordoned
    client.patch(node, {"spec": {"unschedulable": None}})
