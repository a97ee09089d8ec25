"""A store follows the API server through whatever happens to the watch."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garboard.kube import ObjectRef
from garboard.kube.aio import Delta, ObjectSelection, ObjectStore, Reflector
from garboard.kube.errors import broken
from tests.support.kube.fake_cluster import HIVE, FakeCluster, busy, lost
from tests.support.kube.manual_clock import ManualClock, settle

POOLS = ObjectSelection(kind="ClusterPool", api_version=HIVE)


def pool(name: str, size: int = 1, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels}, "spec": {"size": size}}


class Follower:
    """A reflector that runs, and the deltas that it told."""

    def __init__(self, cluster: FakeCluster, clock: ManualClock, jitter: float = 0.0) -> None:
        self.cluster, self.clock = cluster, clock
        self.store = ObjectStore({"size": lambda found: [str(found["spec"]["size"])]})  # type: ignore[index, call-overload]
        self.deltas: list[Delta] = []
        self.pauses: list[float] = []
        self.reflector = Reflector(
            cluster, POOLS, self.store, on_delta=self.deltas.append, clock=clock, jitter=lambda: jitter,
            report=lambda _selection, _error, pause_s: self.pauses.append(pause_s),
        )  # fmt: skip

    @property
    def names(self) -> list[str]:
        return [key.name for key in self.store.sorted_keys()]

    def count(self, verb: str) -> int:
        return sum(1 for each, _ in self.cluster.requests if each == verb)


def follow(scenario: Callable[[Follower], Coroutine[None, None, None]], jitter: float = 0.0) -> None:
    async def within() -> None:
        follower = Follower(FakeCluster(), ManualClock(), jitter)
        task = asyncio.create_task(follower.reflector.run())
        try:
            await scenario(follower)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert follower.cluster.open_watches == [], "a cancelled reflector leaves no watch behind"

    asyncio.run(within())


def test_store_is_filled_by_the_list_and_follows_the_watch() -> None:
    async def scenario(follower: Follower) -> None:
        cluster = follower.cluster
        cluster.put("ClusterPool", pool("a"))
        assert not follower.reflector.synced.is_set
        await settle()
        assert follower.reflector.synced.is_set
        assert follower.names == ["a"]
        cluster.put("ClusterPool", pool("b", size=2))
        cluster.put("ClusterPool", pool("a", size=2))
        await settle()
        assert [found["metadata"]["name"] for found in follower.store.indexed("size", "2")] == ["a", "b"]
        assert follower.store.indexed("size", "1") == ()
        assert [(each.key.name, each.before is None) for each in follower.deltas] == [
            ("a", True), ("b", True), ("a", False),
        ]  # fmt: skip

    follow(scenario)


def test_watch_that_ended_is_resumed_without_a_list() -> None:
    async def scenario(follower: Follower) -> None:
        cluster = follower.cluster
        await settle()
        cluster.put("ClusterPool", pool("a"))
        await settle()
        cluster.end_watches()
        cluster.put("ClusterPool", pool("b"))
        await settle()
        assert follower.names == ["a", "b"]
        cluster.end_watches(broken("https://server", ConnectionResetError()))
        cluster.put("ClusterPool", pool("c"))
        await follower.clock.advance(1)
        assert follower.names == ["a", "b", "c"]
        assert follower.count("list") == 1

    follow(scenario)


def test_trouble_is_told_until_the_server_answers_well_again() -> None:
    async def scenario(follower: Follower) -> None:
        cluster = follower.cluster
        await settle()
        assert follower.reflector.trouble is None
        cluster.fail(lost, "watch", times=2)
        cluster.end_watches(broken("https://server", ConnectionResetError()))
        await settle()
        assert follower.reflector.trouble is not None
        await follower.clock.advance(1)
        assert follower.reflector.trouble is not None, "the next attempt fails as well"
        await follower.clock.advance(30)
        assert follower.reflector.trouble is None, "a watch is open again, although nothing has been told yet"

    follow(scenario)


def test_expired_version_leads_to_a_list_that_tells_what_was_missed() -> None:
    async def scenario(follower: Follower) -> None:
        cluster = follower.cluster
        for name in ("a", "b"):
            cluster.put("ClusterPool", pool(name))
        await settle()
        cluster.end_watches(broken("https://server", ConnectionResetError()))
        await settle()
        await cluster.delete(_ref("a"))
        cluster.put("ClusterPool", pool("b", size=7))
        cluster.put("ClusterPool", pool("c"))
        cluster.forget_history()
        follower.deltas.clear()
        await follower.clock.advance(1)
        assert follower.names == ["b", "c"]
        assert follower.count("list") == 2
        assert [(each.key.name, each.after is None) for each in follower.deltas] == [
            ("a", True), ("b", False), ("c", False),
        ]  # fmt: skip

    follow(scenario)


def test_bookmark_carries_a_quiet_watch_over_a_compaction() -> None:
    async def scenario(follower: Follower) -> None:
        cluster = follower.cluster
        cluster.put("ClusterPool", pool("a"))
        await settle()
        for number in range(5):
            cluster.put("ConfigMap", {"metadata": {"name": f"other-{number}"}}, api_version="v1")
        cluster.send_bookmarks()
        await settle()
        cluster.forget_history()
        cluster.end_watches()
        await settle()
        cluster.put("ClusterPool", pool("b"))
        await settle()
        assert follower.names == ["a", "b"]
        assert follower.count("list") == 1

    follow(scenario)


def test_pauses_grow_with_jitter_until_the_server_answers_well() -> None:
    async def scenario(follower: Follower) -> None:
        follower.cluster.fail(busy, "list", times=4)
        await follower.clock.advance(40)
        assert follower.pauses == [0.8 * 1.5, 1.6 * 1.5, 3.2 * 1.5, 6.4 * 1.5]
        assert follower.reflector.synced.is_set
        follower.cluster.put("ClusterPool", pool("a"))
        await settle()
        follower.cluster.end_watches(broken("https://server", ConnectionResetError()))
        await settle()
        assert follower.pauses[-1] == 0.8 * 1.5

    follow(scenario, jitter=0.5)


def test_watches_that_end_at_once_are_not_begun_again_at_once() -> None:
    async def scenario(follower: Follower) -> None:
        await settle()
        for _ in range(3):
            follower.cluster.end_watches()
            await settle()
        assert follower.pauses == [0.8], "it waits after the first one"
        assert follower.reflector.watches == 1

    follow(scenario)


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from("abc"), st.integers(0, 3)),
        st.tuples(st.just("delete"), st.sampled_from("abc"), st.just(0)),
        st.tuples(
            st.sampled_from(["end", "break", "forget", "bookmark", "busy-list", "busy-watch", "settle", "wait"]),
            st.just(""),
            st.just(0),
        ),
    ),
    max_size=40,
)


@given(OPERATIONS)
def test_store_ends_as_the_server_is_whatever_happened_on_the_way(operations: list[tuple[str, str, int]]) -> None:
    async def scenario(follower: Follower) -> None:
        for what, name, size in operations:
            await _operate(follower, what, name, size)
        await follower.clock.advance(200)
        held = follower.cluster.all("ClusterPool")
        assert list(follower.store.all()) == held
        assert _replayed(follower.deltas) == {each["metadata"]["name"]: each for each in held}

    follow(scenario)


def _replayed(deltas: list[Delta]) -> dict[str, Any]:
    """Follow the deltas alone: each begins where the one before it ended."""
    found: dict[str, Any] = {}
    for each in deltas:
        assert each.before == found.pop(each.key.name, None)
        if each.after is not None:
            found[each.key.name] = each.after
    return found


async def _operate(follower: Follower, what: str, name: str, size: int) -> None:
    cluster = follower.cluster
    match what:
        case "put":
            cluster.put("ClusterPool", pool(name, size))
        case "delete":
            cluster.remove("ClusterPool", "default", name)
        case "end":
            cluster.end_watches()
        case "break":
            cluster.end_watches(broken("https://server", ConnectionResetError()))
        case "forget":
            cluster.forget_history()
        case "bookmark":
            cluster.send_bookmarks()
        case "busy-list" | "busy-watch":
            cluster.fail(busy, what.removeprefix("busy-"))
        case "wait":
            await follower.clock.advance(2)
        case _:
            await settle(20)


def _ref(name: str) -> ObjectRef:
    return ObjectRef("ClusterPool", "default", name, HIVE)


@pytest.mark.parametrize("labels", ["team=a", "team in (a)"])
def test_object_that_leaves_the_selection_is_told_as_gone(labels: str) -> None:
    async def within() -> None:
        cluster, clock, store = FakeCluster(), ManualClock(), ObjectStore()
        selection = ObjectSelection(kind="ClusterPool", api_version=HIVE, labels=labels)
        task = asyncio.create_task(Reflector(cluster, selection, store, clock=clock).run())
        cluster.put("ClusterPool", pool("a", team="a"))
        await settle()
        assert len(store) == 1
        cluster.put("ClusterPool", pool("a", team="b"))
        await settle()
        assert len(store) == 0
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(within())
