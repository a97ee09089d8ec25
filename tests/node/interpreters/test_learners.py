"""A learner is restarted once, if it has its data and serves nobody."""

from dataclasses import dataclass, field, replace

import pytest

from garboard.engine import RestartLearner, StepContext
from garboard.errors import GarboardError
from garboard.node.interpreters.learners import LearnerInterpreter
from garboard.retry import Clock
from tests.support.engine.actions import MemoryFiles

PEER = "https://192.0.2.2:2380"
ACTION = RestartLearner(client_url="https://192.0.2.2:2379", data_dir="/var/lib/etcd", timeout_s=15.0, peer_url=PEER)
SNAPSHOT = "/var/lib/etcd/member/snap/0000000000000002-000000000000001f.snap"


@dataclass
class Learner:
    """Gets its data and serves at given times; a restart makes it serve."""

    data_at_s: float = 1.0
    serves_at_s: float = 8.0
    is_broken: bool = False
    votes: bool = False
    is_unknown: bool = False  # nobody answers who could say whether it votes
    now_s: float = 0.0
    stopped_at_s: list[float] = field(default_factory=list)
    files: MemoryFiles = field(default_factory=MemoryFiles)
    told: list[str] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        if self.now_s >= self.data_at_s:
            self.files.files[SNAPSHOT] = (0o600, b"")

    def stop_containers(self, name: str) -> None:
        assert name == "etcd"
        if self.is_broken:
            raise GarboardError("the container runtime does not answer")
        self.stopped_at_s.append(round(self.now_s, 1))

    def is_learner(self, peer_url: str) -> bool:
        assert peer_url == PEER
        if self.is_unknown:
            raise GarboardError("etcd does not answer")
        return not self.votes

    def restart(self, action: RestartLearner = ACTION) -> None:
        clock = Clock(lambda: self.now_s, self.sleep)
        interpreter = LearnerInterpreter(
            self.files, self, lambda _url: self.now_s >= self.serves_at_s, self.is_learner, clock
        )
        interpreter.restart(action, StepContext({}, self.told.append, lambda _facts: None))


@pytest.mark.parametrize(
    ("learner", "is_restarted"),
    [
        pytest.param(Learner(), True, id="silent with its data"),
        pytest.param(Learner(serves_at_s=1.3), False, id="serves a moment later"),
        pytest.param(Learner(serves_at_s=0.0), False, id="serves at once"),
        pytest.param(Learner(data_at_s=100.0, serves_at_s=7.0), False, id="has no data to wait for"),
    ],
)
def test_learner_is_restarted_only_if_it_is_silent(learner: Learner, is_restarted: bool) -> None:
    learner.restart()
    assert len(learner.stopped_at_s) == is_restarted
    assert all(1.5 <= each <= 1.8 for each in learner.stopped_at_s), "half a second after its data came"


@pytest.mark.parametrize("learner", [Learner(votes=True), Learner(is_unknown=True)], ids=["votes", "nobody knows"])
def test_member_that_may_vote_is_never_restarted(learner: Learner) -> None:
    learner.restart()
    assert learner.stopped_at_s == []
    assert ["etcd does not answer" in line for line in learner.told] == [True] * learner.is_unknown


def test_member_of_a_journal_that_does_not_name_it_is_not_restarted() -> None:
    learner = Learner()
    learner.restart(replace(ACTION, peer_url=""))
    assert learner.stopped_at_s == []


def test_wait_has_an_end_and_is_no_failure() -> None:
    learner = Learner(data_at_s=100.0, serves_at_s=100.0)
    learner.restart()
    assert learner.now_s == pytest.approx(15.0, abs=0.2)
    assert learner.stopped_at_s == []


def test_runtime_that_does_not_answer_costs_time_and_nothing_else() -> None:
    learner = Learner(is_broken=True)
    learner.restart()
    assert learner.told == [
        "the learner could not be restarted, so it takes longer: the container runtime does not answer"
    ]
