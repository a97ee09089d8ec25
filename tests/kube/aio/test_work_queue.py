"""The queue's laws, under random orders of adding, taking, finishing, failing and waiting."""

import asyncio
from collections.abc import Callable, Coroutine

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from garboard.kube.aio import QueueClosed, QueuePace, WorkQueue
from garboard.retry import Pauses
from tests.support.kube.manual_clock import ManualClock, settle

KEYS = st.sampled_from("abcd")
PACE = QueuePace(pauses=Pauses(first_s=1.0, longest_s=10.0, growth=2.0), per_second=5.0, burst=3)


def run(scenario: Callable[[WorkQueue[str], ManualClock], Coroutine[None, None, None]]) -> None:
    async def within() -> None:
        clock = ManualClock()
        await scenario(WorkQueue(PACE, clock), clock)

    asyncio.run(within())


class QueueLaws(RuleBasedStateMachine):
    """A model beside the queue: what wants work, what is worked on, and what comes when."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.clock = ManualClock()
        self.queue: WorkQueue[str] = WorkQueue(PACE, self.clock)
        self.wanted: set[str] = set()
        self.active: list[str] = []
        self.later: dict[str, float] = {}
        self.failed: dict[str, int] = {}

    def teardown(self) -> None:
        self.loop.close()

    @rule(key=KEYS)
    def add(self, key: str) -> None:
        self.queue.add(key)
        self.wanted.add(key)

    @rule(key=KEYS, delay_s=st.sampled_from([0.0, 0.5, 3.0, 8.0]))
    def add_after(self, key: str, delay_s: float) -> None:
        self.queue.add_after(key, delay_s)
        self._comes_later(key, delay_s)

    def _comes_later(self, key: str, delay_s: float) -> None:
        if delay_s <= 0:
            self.wanted.add(key)
        else:
            at = self.clock.now_s() + delay_s
            self.later[key] = min(self.later.get(key, at), at)

    @precondition(lambda self: self.wanted - set(self.active))
    @rule()
    def take(self) -> None:
        key = self.loop.run_until_complete(asyncio.wait_for(self.queue.get(), 60))
        assert key in self.wanted, "nothing is handed out that nobody added"
        assert key not in self.active, "never two workers on one key"
        self.wanted.discard(key)
        self.active.append(key)

    @precondition(lambda self: self.active)
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(self.active))
        self.queue.forget(key)
        self.failed.pop(key, None)
        self._give_back(key)

    @precondition(lambda self: self.active)
    @rule(data=st.data())
    def fail(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(self.active))
        pause_s = self.queue.add_failed(key)
        earlier = self.failed.get(key, 0)
        self.failed[key] = earlier + 1
        assert pause_s >= min(2.0**earlier, 10.0), "back-off is at least the pause of the key"
        # The bucket cannot owe more than one token for every failure so far.
        assert pause_s <= max(10.0, sum(self.failed.values()) * 100 / PACE.per_second)
        self._comes_later(key, pause_s)
        self._give_back(key)

    def _give_back(self, key: str) -> None:
        self.queue.done(key)
        self.active.remove(key)

    @rule(seconds=st.sampled_from([0.25, 1.0, 4.0, 20.0]))
    def wait(self, seconds: float) -> None:
        self.clock.advance_now(seconds)
        due = {key for key, at in self.later.items() if at <= self.clock.now_s()}
        self.wanted |= due
        self.later = {key: at for key, at in self.later.items() if key not in due}

    @invariant()
    def agrees_with_the_model(self) -> None:
        assert len(self.queue) == len(self.wanted - set(self.active)), "no add is lost, none counts twice"
        assert self.queue.waiting_later == len(self.later)
        assert self.queue.is_idle == (not self.wanted and not self.active)
        assert {key: self.queue.failures(key) for key in self.failed} == self.failed


TestQueueLaws = QueueLaws.TestCase


@given(st.lists(KEYS, max_size=40), st.integers(1, 5), st.randoms(use_true_random=False))
def test_no_two_workers_ever_have_the_same_key_and_each_add_is_followed_by_work(keys, workers, order) -> None:  # type: ignore[no-untyped-def]
    active: set[str] = set()
    worked: list[str] = []
    added_at: dict[str, int] = {}

    async def scenario(queue: WorkQueue[str], clock: ManualClock) -> None:
        async def worker() -> None:
            while True:
                try:
                    key = await queue.get()
                except QueueClosed:
                    return
                assert key not in active
                active.add(key)
                worked.append(key)
                started = len(worked)
                for _ in range(order.randrange(4)):
                    await asyncio.sleep(0)
                active.discard(key)
                if added_at[key] <= started:
                    added_at[key] = -1
                queue.done(key)

        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(worker())
            for key in keys:
                added_at[key] = len(worked) + 1
                queue.add(key)
                for _ in range(order.randrange(3)):
                    await asyncio.sleep(0)
            await queue.idle()
            queue.shut_down()

    run(scenario)
    assert set(worked) == set(keys)
    assert all(at == -1 for at in added_at.values()), "work began after the last add of every key"


def test_worker_that_is_cancelled_hands_its_wake_up_on() -> None:
    async def scenario(queue: WorkQueue[str], clock: ManualClock) -> None:
        first, second = asyncio.ensure_future(queue.get()), asyncio.ensure_future(queue.get())
        await settle()
        queue.add("a")
        first.cancel()
        assert await second == "a"

    run(scenario)


def test_shut_down_hands_out_what_waits_and_nothing_that_would_come_later() -> None:
    async def scenario(queue: WorkQueue[str], clock: ManualClock) -> None:
        queue.add("a")
        queue.add_after("b", 5)
        queue.shut_down()
        queue.add("c")
        assert await queue.get() == "a"
        queue.done("a")
        await clock.advance(10)
        with pytest.raises(QueueClosed):
            await queue.get()

    run(scenario)


def test_failures_of_many_keys_share_a_rate() -> None:
    async def scenario(queue: WorkQueue[str], clock: ManualClock) -> None:
        slow = [queue.add_failed(f"key-{number}") for number in range(20)]
        assert slow[:3] == [1.0, 1.0, 1.0]
        assert slow[-1] == pytest.approx(17 / PACE.per_second)

    run(scenario)
