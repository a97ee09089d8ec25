"""Workers go on until every key has done well, and then write nothing more."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garboard.errors import GarboardError
from garboard.kube import ObjectConflict, ObjectRef
from garboard.kube.aio import (
    Delta,
    NamespacedName,
    ObjectSelection,
    ObjectStore,
    QueuePace,
    Reflector,
    WorkQueue,
    run_workers,
)
from garboard.kube.errors import broken
from garboard.retry import Pauses
from tests.support.kube.fake_cluster import HIVE, FakeCluster, busy, conflict, lost
from tests.support.kube.manual_clock import ManualClock, settle

PACE = QueuePace(pauses=Pauses(first_s=1.0, longest_s=60.0, growth=2.0))


class Office:
    """A queue with workers, whose work a test says."""

    def __init__(self, work: Callable[[str], Awaitable[float | None]], **options: Any) -> None:
        self.clock = ManualClock()
        self.queue: WorkQueue[str] = WorkQueue(PACE, self.clock)
        self.reported: list[tuple[str, str, float]] = []
        self.task = asyncio.ensure_future(
            run_workers(
                self.queue,
                2,
                work,
                report=lambda key, error, pause_s: self.reported.append((key, str(error), pause_s)),
                **options,
            )
        )


def test_failed_key_comes_again_with_growing_pauses_until_it_does_well() -> None:
    async def scenario() -> None:
        failures = {"a": 3, "b": 0}
        done: list[tuple[str, float]] = []

        async def work(key: str) -> None:
            if failures[key] > 0:
                failures[key] -= 1
                raise GarboardError("not yet", hint="h")
            done.append((key, office.clock.now_s() - 1000))

        office = Office(work)
        office.queue.add("a")
        office.queue.add("b")
        await office.clock.advance(30)
        assert done == [("b", 0), ("a", 7)]
        assert office.reported == [("a", "not yet", 1.0), ("a", "not yet", 2.0), ("a", "not yet", 4.0)]
        assert office.queue.failures("a") == 0
        office.queue.shut_down()
        await office.task

    asyncio.run(scenario())


def test_work_says_when_it_wants_to_be_done_again() -> None:
    async def scenario() -> None:
        times: list[float] = []

        async def work(_key: str) -> float | None:
            times.append(office.clock.now_s() - 1000)
            return 10.0 if len(times) < 3 else None

        office = Office(work)
        office.queue.add("a")
        await office.clock.advance(100)
        assert times == [0, 10, 20]
        office.queue.shut_down()
        await office.task

    asyncio.run(scenario())


def test_bug_in_the_work_on_one_key_stops_no_other(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        done: list[str] = []

        async def work(key: str) -> None:
            if key == "a":
                raise KeyError("bug")
            done.append(key)

        office = Office(work)
        for key in "abc":
            office.queue.add(key)
        with caplog.at_level(logging.ERROR):
            await settle()
        assert done == ["b", "c"]
        assert "Traceback" in caplog.text
        office.task.cancel()
        await asyncio.gather(office.task, return_exceptions=True)

    asyncio.run(scenario())


def test_some_errors_have_pauses_of_their_own() -> None:
    async def scenario() -> None:
        async def work(_key: str) -> None:
            raise conflict("x")

        office = Office(work, pause_for=lambda error: 0.5 if isinstance(error, ObjectConflict) else None)
        office.queue.add("a")
        await office.clock.advance(2.1)
        assert [pause_s for _, _, pause_s in office.reported] == [0.5] * 5
        office.task.cancel()
        await asyncio.gather(office.task, return_exceptions=True)

    asyncio.run(scenario())


class Echo:
    """The smallest controller: the status repeats the spec."""

    def __init__(self, cluster: FakeCluster, clock: ManualClock) -> None:
        self.cluster, self.clock = cluster, clock
        self.store = ObjectStore()
        self.queue: WorkQueue[NamespacedName] = WorkQueue(PACE, clock)
        selection = ObjectSelection(kind="ClusterPool", api_version=HIVE)
        self.reflector = Reflector(
            cluster, selection, self.store, on_delta=self.on_delta, clock=clock, jitter=lambda: 0.0
        )

    def on_delta(self, delta: Delta) -> None:
        self.queue.add(delta.key)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.reflector.run())
            group.create_task(run_workers(self.queue, 2, self.work, report=lambda *_: None))

    async def work(self, key: NamespacedName) -> None:
        found: Any = self.store.find(*key)
        if found is None or found.get("status") == {"size": found["spec"]["size"]}:
            return
        ref = ObjectRef("ClusterPool", key.namespace, key.name, HIVE)
        await self.cluster.replace(ref, {**found, "status": {"size": found["spec"]["size"]}}, subresource="status")


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "delete", "busy", "lost", "conflict", "break", "forget", "restart", "wait"]),
        st.sampled_from("abc"),
        st.integers(0, 5),
    ),
    max_size=25,
)


@given(STEPS)
def test_whatever_happens_every_object_is_dealt_with_and_then_nothing_is_written(steps: list[Any]) -> None:
    async def scenario() -> None:
        cluster, clock = FakeCluster(), ManualClock()
        running = asyncio.create_task(Echo(cluster, clock).run())
        for what, name, size in steps:
            match what:
                case "put":
                    held = cluster.get("ClusterPool", "default", name) or {}
                    status = {"status": held["status"]} if "status" in held else {}
                    cluster.put("ClusterPool", {"metadata": {"name": name}, "spec": {"size": size}, **status})
                case "delete":
                    cluster.remove("ClusterPool", "default", name)
                case "busy":
                    cluster.fail(busy, times=size)
                case "lost":
                    cluster.fail(lost, "replace", is_done=True)
                case "conflict":
                    cluster.fail(conflict, "replace", times=size)
                case "break":
                    cluster.end_watches(broken("https://server", ConnectionResetError()))
                case "forget":
                    cluster.forget_history()
                case "restart":
                    running.cancel()
                    await asyncio.gather(running, return_exceptions=True)
                    running = asyncio.create_task(Echo(cluster, clock).run())
                case _:
                    await clock.advance(size)
        cluster.faults.clear()
        await clock.advance(600)
        pools = cluster.all("ClusterPool")
        assert all(each["status"] == {"size": each["spec"]["size"]} for each in pools)
        before = len(cluster.writes)
        await clock.advance(600)
        assert len(cluster.writes) == before, "nothing is written in the steady state"
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(scenario())
