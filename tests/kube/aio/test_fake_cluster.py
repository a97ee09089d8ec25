"""What the fake API server has beyond the contract: failures on demand, and garbage that is collected on demand."""

import asyncio
from typing import Any

import pytest

from garboard.kube import ConnectionBroken, Forbidden, ObjectRef, ServerBusy
from tests.support.kube.fake_cluster import HIVE, FakeCluster, busy, lost

POOL = ObjectRef("ClusterPool", "default", "a", HIVE)
NAMESPACE = ObjectRef("Namespace", "", "made", "v1")


def pool(name: str = "a", **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **metadata}, "spec": {"size": 1}}


def test_requests_that_fit_fail_so_often() -> None:
    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.fail(busy, "get", "ClusterPool", times=2)
        await cluster.create(POOL, pool())
        for _ in range(2):
            with pytest.raises(ServerBusy):
                await cluster.find(POOL)
        assert await cluster.find(POOL)
        assert [verb for verb, _ in cluster.requests] == ["create", "get", "get", "get"]

    asyncio.run(scenario())


def test_lost_answer_is_that_of_a_request_that_was_carried_out() -> None:
    async def scenario() -> None:
        cluster = FakeCluster()
        cluster.fail(lost, "create", is_done=True)
        with pytest.raises(ConnectionBroken):
            await cluster.create(POOL, pool())
        assert cluster.get("ClusterPool", "default", "a")

    asyncio.run(scenario())


def test_what_has_lost_its_owner_is_collected_and_finalizers_are_heeded() -> None:
    cluster = FakeCluster()
    owner = cluster.put("ClusterPool", pool("owner"))
    owned = [{"apiVersion": HIVE, "kind": "ClusterPool", "name": "owner", "uid": owner["metadata"]["uid"]}]
    cluster.put("ClusterClaim", pool("plain", ownerReferences=owned))
    cluster.put("ClusterClaim", pool("held", ownerReferences=owned, finalizers=["x.example/y"]))
    assert cluster.collect_garbage() == 0
    cluster.remove("ClusterPool", "default", "owner")
    cluster.collect_garbage()
    (held,) = cluster.all("ClusterClaim")
    assert held["metadata"]["name"] == "held"
    assert "deletionTimestamp" in held["metadata"]


def test_namespace_goes_with_all_that_is_in_it() -> None:
    async def scenario() -> None:
        cluster = FakeCluster()
        await cluster.create(NAMESPACE, {"metadata": {"name": "made"}})
        await cluster.create(ObjectRef("ClusterPool", "made", "a", HIVE), pool())
        await cluster.delete(NAMESPACE)
        with pytest.raises(Forbidden, match="being terminated"):
            await cluster.create(ObjectRef("ClusterPool", "made", "b", HIVE), pool("b"))
        cluster.collect_garbage()
        assert cluster.all("ClusterPool") == []
        assert await cluster.find(NAMESPACE) is None

    asyncio.run(scenario())


def test_requests_come_in_the_order_that_a_test_says() -> None:
    async def scenario() -> None:
        cluster, gate = FakeCluster(), asyncio.Event()

        async def later(verb: str, _ref: ObjectRef) -> None:
            if verb == "create":
                await gate.wait()

        cluster.before_each = later
        making = asyncio.ensure_future(cluster.create(POOL, pool()))
        assert await cluster.find(POOL) is None
        gate.set()
        await making
        assert await cluster.find(POOL)

    asyncio.run(scenario())
