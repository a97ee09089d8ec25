"""One leader at a time, on a clock of the tests."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garboard.errors import GarboardError
from garboard.kube import LeaseClaim, LeaseLost
from garboard.kube.aio import LeaderElection, LeaderPace
from tests.support.kube.fake_cluster import FakeCluster, busy, lost
from tests.support.kube.manual_clock import ManualClock, settle

PACE = LeaderPace(every_s=2.0, without_renewal_s=10.0, release_within_s=5.0)


class Candidates:
    """Processes that want one Lease, and which of them works."""

    def __init__(self) -> None:
        self.cluster, self.clock = FakeCluster(), ManualClock()
        self.working: set[str] = set()
        self.failures: list[GarboardError] = []
        self.tasks: dict[str, asyncio.Task[None]] = {}

    def election(self, name: str) -> LeaderElection:
        claim = LeaseClaim(name="fleet", namespace="kube-system", holder=name, duration_s=15.0)
        return LeaderElection(self.cluster, claim, pace=PACE, clock=self.clock, jitter=lambda: 0.0)

    async def work(self, name: str) -> None:
        self.working.add(name)
        assert len(self.working) == 1, "two leaders at once"
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self.working.discard(name)

    def start(self, name: str, work: Callable[[], Awaitable[None]] | None = None) -> None:
        async def run() -> None:
            try:
                await self.election(name).lead(work or (lambda: self.work(name)))
            except GarboardError as error:
                self.failures.append(error)

        self.tasks[name] = asyncio.create_task(run())

    async def stop(self, *names: str) -> None:
        for name in names or tuple(self.tasks):
            self.tasks[name].cancel()
        ended = await asyncio.gather(*self.tasks.values(), return_exceptions=True)
        assert [each for each in ended if isinstance(each, Exception)] == []

    @property
    def holder(self) -> str:
        found = self.cluster.get("Lease", "kube-system", "fleet", api_version="coordination.k8s.io/v1")
        return found["spec"]["holderIdentity"] if found else ""


def vote(scenario: Callable[[Candidates], Awaitable[None]]) -> None:
    async def within() -> None:
        candidates = Candidates()
        try:
            await scenario(candidates)
        finally:
            await candidates.stop()

    asyncio.run(within())


def test_leader_that_stops_hands_over_at_once() -> None:
    async def scenario(candidates: Candidates) -> None:
        candidates.start("one")
        await settle()
        candidates.start("two")
        await candidates.clock.advance(60)
        assert candidates.working == {"one"}
        assert candidates.holder == "one"
        candidates.tasks["one"].cancel()
        await settle()
        assert candidates.holder == ""
        await candidates.clock.advance(2)
        assert candidates.working == {"two"}

    vote(scenario)


def test_leader_that_was_killed_is_followed_after_the_duration() -> None:
    async def scenario(candidates: Candidates) -> None:
        candidates.start("one")
        await settle()
        candidates.start("two")
        await settle()
        candidates.cluster.fail(busy, "replace", times=1000)  # it cannot release either
        candidates.tasks["one"].cancel()
        await candidates.clock.advance(14)
        candidates.cluster.faults.clear()
        assert candidates.working == set()
        assert candidates.holder == "one"
        await candidates.clock.advance(4)
        assert candidates.working == {"two"}

    vote(scenario)


def test_leader_that_cannot_renew_stops_before_another_may_begin() -> None:
    async def scenario(candidates: Candidates) -> None:
        candidates.start("one")
        await settle()
        candidates.cluster.fail(busy, "replace", times=1000)
        await candidates.clock.advance(9)
        assert candidates.working == {"one"}
        await candidates.clock.advance(3)
        assert candidates.working == set()
        assert isinstance(candidates.failures[0], LeaseLost)

    vote(scenario)


def test_leader_whose_server_is_silent_stops_too() -> None:
    async def scenario(candidates: Candidates) -> None:
        candidates.start("one")
        await settle()
        silence: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def silent(_verb: str, _ref: object) -> None:
            await asyncio.shield(silence)

        candidates.cluster.before_each = silent
        await candidates.clock.advance(11)
        assert candidates.working == set()
        await candidates.clock.advance(5)
        assert isinstance(candidates.failures[0], LeaseLost)

    vote(scenario)


def test_renewal_whose_answer_was_lost_is_not_taken_for_another_holder() -> None:
    async def scenario(candidates: Candidates) -> None:
        candidates.start("one")
        await settle()
        candidates.cluster.fail(lost, "replace", is_done=True)
        await candidates.clock.advance(30)
        assert candidates.working == {"one"}
        assert not candidates.failures

    vote(scenario)


@pytest.mark.parametrize("error", [GarboardError("broken", hint="h"), ValueError("bug")])
def test_work_that_fails_releases_the_lease_and_is_told(error: Exception) -> None:
    async def scenario(candidates: Candidates) -> None:
        async def fails() -> None:
            raise error

        with pytest.raises(type(error)):
            await candidates.election("one").lead(fails)
        assert candidates.holder == ""

    vote(scenario)


@given(
    st.lists(
        st.tuples(st.sampled_from(["start", "cancel", "busy", "lost", "wait"]), st.sampled_from("abc")), max_size=25
    )
)
def test_never_two_leaders_whatever_happens(steps: list[tuple[str, str]]) -> None:
    async def scenario(candidates: Candidates) -> None:
        for what, name in steps:
            match what:
                case "start" if name not in candidates.tasks or candidates.tasks[name].done():
                    candidates.start(name)
                case "cancel" if name in candidates.tasks:
                    candidates.tasks[name].cancel()
                case "busy":
                    candidates.cluster.fail(busy, "replace", times=4)
                case "lost":
                    candidates.cluster.fail(lost, is_done=True)
                case _:
                    pass
            await candidates.clock.advance(3)
        candidates.cluster.faults.clear()
        await candidates.clock.advance(15)
        if all(each.done() for each in candidates.tasks.values()):
            candidates.start("last")
        await candidates.clock.advance(40)
        assert len(candidates.working) == 1

    vote(scenario)
