from dataclasses import dataclass, field

import pytest

from garboard.errors import ClusterUnreachable, GarboardError, NotReady
from garboard.retry import Clock, Deadline, Pauses, reporting_waits, retry, try_times, wait_until


@dataclass
class FakeClock:
    """A clock that moves only while somebody sleeps."""

    now: float = 0.0
    slept: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    @property
    def clock(self) -> Clock:
        return Clock(lambda: self.now, self.sleep)


def test_what_is_so_at_once_is_not_waited_for() -> None:
    time = FakeClock()
    assert wait_until(lambda: None, timeout_s=0, pauses=Pauses.every(1), clock=time.clock) is None
    assert time.slept == []


def test_pauses_grow_up_to_the_longest_and_end_with_the_time() -> None:
    time = FakeClock()
    problem = wait_until(lambda: "closed", timeout_s=8, pauses=Pauses(1, 3, 2), clock=time.clock)
    assert (problem, time.slept) == ("closed", [1, 2, 3, 2])


def test_attempt_is_repeated_while_its_failure_may_pass() -> None:
    time, told = FakeClock(), []
    failures = [ClusterUnreachable("away"), ClusterUnreachable("away")]

    def attempt() -> str:
        if failures:
            raise failures.pop()
        return "done"

    done = retry(
        attempt,
        timeout_s=10,
        pauses=Pauses.every(1),
        is_passing=lambda error: isinstance(error, ClusterUnreachable),
        on_failure=lambda error, left_s: told.append((error.message, left_s)),
        clock=time.clock,
    )
    assert (done, told) == ("done", [("away", 10), ("away", 9)])


@pytest.mark.parametrize(
    ("error", "attempts"),
    [pytest.param(NotReady("never"), 1, id="will not pass"), pytest.param(ClusterUnreachable("away"), 4, id="time")],
)
def test_failure_is_raised_in_the_end(error: GarboardError, attempts: int) -> None:
    time, made = FakeClock(), []

    def attempt() -> None:
        made.append(time.now)
        raise error

    with pytest.raises(type(error)):
        retry(
            attempt,
            timeout_s=3,
            pauses=Pauses.every(1),
            is_passing=lambda found: isinstance(found, ClusterUnreachable),
            clock=time.clock,
        )
    assert len(made) == attempts


def test_one_more_probe_is_made_at_the_very_end() -> None:
    time = FakeClock()
    opens_at_the_end = wait_until(
        lambda: None if time.now >= 5 else "closed", timeout_s=5, pauses=Pauses.every(2), clock=time.clock
    )
    assert (opens_at_the_end, time.slept) == (None, [2, 2, 1])


@pytest.mark.parametrize(
    ("answers", "found", "pauses"),
    [
        pytest.param([None], None, 0, id="at once"),
        pytest.param(["a", "b", None], None, 2, id="at the third try"),
        pytest.param(["a", "b", "c", None], "c", 2, id="never within three"),
    ],
)
def test_attempts_are_counted_whatever_time_they_take(
    answers: list[str | None], found: str | None, pauses: int
) -> None:
    time, left = FakeClock(), iter(answers)
    assert try_times(lambda: next(left), tries=3, pause_s=2, clock=time.clock) == found
    assert time.slept == [2] * pauses


def test_deadline_has_nothing_left_once_it_has_passed() -> None:
    time = FakeClock()
    end = Deadline.after(3, time.clock)
    time.sleep(1)
    assert end.left_s() == 2
    time.sleep(5)
    assert end.left_s() == 0


def test_wait_tells_every_few_seconds_what_it_waits_for() -> None:
    time, told = FakeClock(), list[str]()
    with reporting_waits(told.append):
        assert wait_until(lambda: "no answer", timeout_s=12, pauses=Pauses.every(1), clock=time.clock) == "no answer"
    assert told == ["[wait] 5 s: no answer; for at most 7 s more", "[wait] 10 s: no answer; for at most 2 s more"]


def test_short_wait_tells_nothing() -> None:
    time, told = FakeClock(), list[str]()
    answers = iter(["not yet", "not yet", None])
    with reporting_waits(told.append):
        assert wait_until(lambda: next(answers), timeout_s=60, pauses=Pauses.every(2), clock=time.clock) is None
    assert told == []


def test_repeated_attempts_tell_why_they_fail() -> None:
    time, told = FakeClock(), list[str]()

    def attempt() -> None:
        raise ClusterUnreachable("away")

    def failing() -> None:
        retry(attempt, timeout_s=9, pauses=Pauses.every(2), is_passing=lambda _error: True, clock=time.clock)

    with reporting_waits(told.append), pytest.raises(ClusterUnreachable):
        failing()
    assert told == ["[wait] 6 s: away; for at most 3 s more"]
    with pytest.raises(ClusterUnreachable):
        failing()
    assert len(told) == 1, "nobody listens outside the block"
