"""A controller over an API server in memory: what it keeps, what it serves, and what a failure of one key does."""

import asyncio
import random
from typing import Any

import pytest

from garboard.fleet.controllers import ObjectId, Stored
from garboard.fleet.controllers.marks import SECRET_TYPE
from garboard.kube.aio import Delta, NamespacedName
from garboard.node.fleet.control.controller import FleetController, Shard, kept
from garboard.node.fleet.control.local_runs import NoRuns
from tests.support.fleet.model_fleet import CONFIG, encoded
from tests.support.kube.fake_cluster import FakeCluster, busy, lost


def controller(api: FakeCluster, **options: Any) -> FleetController:
    return FleetController(api, runs=lambda _ended: NoRuns(), letters=random.Random(1), **options)


def prepared(namespace: str = "fleet", api: FakeCluster | None = None) -> FakeCluster:
    api = api or FakeCluster()
    api.put("Namespace", {"metadata": {"name": namespace}}, api_version="v1")
    api.put("ClusterImageSet", {"metadata": {"name": "img"}, "spec": {"releaseImage": "r:1"}})
    data = {"install-config.yaml": encoded(CONFIG)}
    api.put("Secret", {"metadata": {"name": "template", "namespace": namespace}, "data": data}, api_version="v1")
    spec = {
        "platform": {"none": {}}, "baseDomain": "x", "size": 1, "imageSetRef": {"name": "img"},
        "installConfigSecretTemplateRef": {"name": "template"},
    }  # fmt: skip
    api.put("ClusterPool", {"metadata": {"name": "edge", "namespace": namespace}, "spec": spec})
    return api


async def until_clusters(made: FleetController, api: FakeCluster, count: int) -> None:
    work = asyncio.create_task(made.run())
    try:
        async with asyncio.timeout(60):
            while len(api.all("ClusterDeployment")) < count or not made.queue.is_idle:
                await asyncio.sleep(0)
    finally:
        work.cancel()
        await asyncio.wait((work,))


@pytest.mark.parametrize("of", [1, 2, 7])
def test_every_namespace_is_of_one_shard(of: int) -> None:
    shards = [Shard(number, of) for number in range(of)]
    for name in ("fleet", "edge-x7k2p", "", "default"):
        assert sum(1 for each in shards if each.has(name)) == 1


def test_each_key_is_decided_by_its_shard_and_by_no_other() -> None:
    """Pools of six namespaces, whose clusters are in namespaces of either shard."""

    async def story() -> None:
        api = FakeCluster()
        for number in range(6):
            prepared(f"fleet-{number}", api)
        shards = [controller(api, shard=Shard(number, 2)) for number in range(2)]
        decided = [watched(each) for each in shards]
        work = [asyncio.create_task(each.run()) for each in shards]
        async with asyncio.timeout(60):
            while len(api.all("ClusterProvision")) < 6 or not all(each.queue.is_idle for each in shards):
                await asyncio.sleep(0)
        for each in work:
            each.cancel()
        await asyncio.wait(work)
        assert not set(decided[0]) & set(decided[1])
        for shard, keys in enumerate(decided):
            assert all(Shard(shard, 2).has(each.namespace or each.name) for each in keys)
        wanted = {f"fleet-{number}" for number in range(6)}
        assert {each.namespace for keys in decided for each in keys if each.kind == "ClusterPool"} == wanted
        assert all(any(each.kind == "ClusterPool" for each in keys) for keys in decided), "both have pools to serve"

    asyncio.run(story())


def watched(made: FleetController) -> list[ObjectId]:
    """Return the keys that a controller decides about, as it does."""
    decided: list[ObjectId] = []
    work = made._work

    async def working(key: ObjectId) -> float | None:
        decided.append(key)
        return await work(key)

    made._work = working  # type: ignore[method-assign]
    return decided


def test_pool_of_another_namespace_is_left_alone() -> None:
    async def story() -> None:
        api = prepared()
        work = asyncio.create_task(controller(api, namespace="other").run())
        for _ in range(2000):
            await asyncio.sleep(0)
        work.cancel()
        assert api.all("ClusterDeployment") == []
        await until_clusters(controller(api, namespace="fleet"), api, 1)
        (made,) = map(Stored, api.all("ClusterDeployment"))
        assert made.text("status", "conditions") == ""
        assert made.entries("status", "conditions"), "clusters of its pools are served, too, wherever they are"

    asyncio.run(story())


def test_metrics_tell_what_pools_consist_of() -> None:
    async def story() -> None:
        api = prepared()
        made = controller(api)
        await until_clusters(made, api, 1)
        text = made.pool_metrics().text()
        labels = 'clusterpool_namespace="fleet",clusterpool_name="edge"'
        for state, count in (("installing", 1), ("unclaimed", 1), ("assignable", 0), ("stale", 0)):
            assert f"hive_clusterpool_clusterdeployments_{state}{{{labels}}} {count}\n" in text
        other = controller(api, namespace="other")
        other.cache = made.cache
        assert "fleet" not in other.pool_metrics().text(), "those of others are shown by others"

    asyncio.run(story())


def test_failures_of_the_server_delay_and_lose_nothing() -> None:
    async def story() -> None:
        api = prepared()
        api.fail(busy, "create", "Namespace", times=2)
        api.fail(lost, "create", "ClusterDeployment", is_done=True)
        api.fail(lost, "replace", "ClusterPool", is_done=True)
        made = controller(api)
        await until_clusters(made, api, 1)
        assert made.failures >= 2
        assert len(api.all("Namespace", api_version="v1")) == 4, "the names that were promised first are used"
        (cluster,) = map(Stored, api.all("ClusterDeployment"))
        assert cluster.name == cluster.namespace

    asyncio.run(story())


def test_deletion_that_comes_late_does_not_hide_the_next_object_of_the_name() -> None:
    made = controller(FakeCluster())
    old: Any = {"metadata": {"name": "a", "namespace": "n", "uid": "1", "resourceVersion": "5"}, "kind": "ClusterPool"}
    new: Any = {"metadata": {"name": "a", "namespace": "n", "uid": "2", "resourceVersion": "9"}, "kind": "ClusterPool"}
    made.cache.put(Stored(new))
    made._on_delta("ClusterPool", Delta(NamespacedName("n", "a"), old, None))
    found = made.cache.get("ClusterPool", "n", "a")
    assert found is not None
    assert found.uid == "2"


def test_secrets_that_nothing_names_are_kept_without_their_content() -> None:
    for secret in ({"type": "helm.sh/release.v1"}, {"metadata": {"name": "s", "labels": {SECRET_TYPE: "documents"}}}):
        content: Any = {"metadata": {"name": "s"}, "data": {"key": "eA=="}, **secret}
        assert "data" not in kept("Secret", "v1", content)
    notes: Any = {"managedFields": [{}], "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"}}
    slim = kept("Secret", "v1", {"metadata": {"name": "s", **notes}, "data": {"key": "eA=="}})
    assert slim == {
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "annotations": {}}, "data": {"key": "eA=="},
    }  # fmt: skip
