"""The cache of controllers takes answers in whatever order they are seen."""

from typing import Any

from garboard.fleet.controllers import ObjectCache, Stored


def cluster(version: int, uid: str = "first") -> Stored:
    metadata: Any = {"namespace": "c1", "name": "c1", "uid": uid, "resourceVersion": str(version)}
    return Stored({"kind": "ClusterDeployment", "metadata": metadata})


def held(cache: ObjectCache) -> Stored | None:
    return cache.get("ClusterDeployment", "c1", "c1")


def test_older_version_never_replaces_a_newer_one() -> None:
    cache = ObjectCache()
    assert cache.put(cluster(7))
    assert not cache.put(cluster(6))
    assert held(cache) == cluster(7)


def test_same_version_is_kept_once() -> None:
    """What a write was answered is told by the watch again: of the two copies one is enough."""
    cache, told = ObjectCache(), cluster(7)
    cache.put(cluster(7))
    assert not cache.put(told)
    assert held(cache) is told


def test_object_that_is_gone_does_not_come_back_with_a_late_answer() -> None:
    """A write is answered with version 6, the object is deleted, and the watch tells that first."""
    cache = ObjectCache()
    cache.put(cluster(5))
    cache.end(cluster(5).id, "first")
    assert not cache.put(cluster(6))
    assert held(cache) is None


def test_end_of_an_object_leaves_its_successor() -> None:
    cache = ObjectCache()
    cache.put(cluster(9, uid="second"))
    cache.end(cluster(8).id, "first")
    assert held(cache) == cluster(9, uid="second")


def test_only_so_many_ends_are_remembered() -> None:
    cache = ObjectCache()
    for number in range(30_000):
        cache.end(cluster(1).id, f"uid-{number}")
    assert len(cache._gone) == 20_000
    assert not cache.put(cluster(1, uid="uid-29999"))
