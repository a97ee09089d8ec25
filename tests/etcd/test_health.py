"""When a member has caught up: with all that etcd had at the first look, and not with what came after it."""

from dataclasses import dataclass, field, replace

import pytest

from garboard.etcd import CaughtUp, EtcdUnreachable, Member
from garboard.etcd.values import MemberStatus

URL = "https://192.0.2.2:2380"
OWN = Member(id=2, name="b", peer_urls=(URL,), client_urls=("b",))
LEADER = Member(id=1, name="a", peer_urls=("https://192.0.2.1:2380",), client_urls=("a",))
OTHER = Member(id=3, name="c", peer_urls=("https://192.0.2.3:2380",), client_urls=("c",))


def status(member: Member, **more: object) -> MemberStatus:
    found = MemberStatus(
        member_id=member.id, version="3.6.4", leader=LEADER.id, raft_index=7, applied_index=7, db_bytes=1,
        is_learner=False, errors=(),
    )  # fmt: skip
    return replace(found, **more)  # type: ignore[arg-type]


@dataclass
class Statuses:
    """An etcd whose members report what they are told to."""

    of: dict[str, MemberStatus] = field(default_factory=lambda: {"a": status(LEADER), "b": status(OWN)})
    known: tuple[Member, ...] = (LEADER, OWN)

    def members(self) -> tuple[Member, ...]:
        return self.known

    def status(self, url: str) -> MemberStatus:
        if url not in self.of:
            raise EtcdUnreachable("it does not answer")
        return self.of[url]


def caught_up(etcd: Statuses) -> CaughtUp:
    return CaughtUp(etcd, URL)  # type: ignore[arg-type]


def test_member_that_answers_and_has_not_applied_what_the_leader_had_has_not_caught_up() -> None:
    etcd = Statuses()
    etcd.of["b"] = status(OWN, applied_index=6)
    member = caught_up(etcd)
    assert member.problem() == "it has applied 6 of 7 entries"
    etcd.of["b"] = status(OWN, applied_index=7)
    assert member.problem() is None


def test_what_comes_after_the_first_look_is_not_waited_for() -> None:
    etcd = Statuses()
    etcd.of["b"] = status(OWN, applied_index=6)
    member = caught_up(etcd)
    assert member.problem() is not None
    etcd.of["a"] = status(LEADER, raft_index=1000, applied_index=1000)
    etcd.of["b"] = status(OWN, raft_index=900, applied_index=7)
    assert member.problem() is None
    assert caught_up(etcd).problem() == "it has applied 7 of 1000 entries"


def test_entries_that_a_member_has_and_has_not_applied_do_not_count() -> None:
    etcd = Statuses()
    etcd.of["b"] = status(OWN, raft_index=7, applied_index=3)
    assert caught_up(etcd).problem() == "it has applied 3 of 7 entries"


def test_member_that_reports_a_problem_has_not_caught_up() -> None:
    etcd = Statuses()
    etcd.of["b"] = status(OWN, errors=("etcdserver: no leader",))
    assert caught_up(etcd).problem() == "etcdserver: no leader"


def test_goal_is_that_of_the_leader_or_else_of_another_member_that_knows_one() -> None:
    etcd = Statuses()
    del etcd.of["a"]
    etcd.of["b"] = status(OWN, leader=0)
    member = caught_up(etcd)
    assert member.problem() == "etcd has no leader"
    etcd.of["b"] = status(OWN, raft_index=9, applied_index=8)
    assert member.problem() == "it has applied 8 of 9 entries"


@pytest.mark.parametrize("known", [(LEADER, OTHER, OWN), (OWN, LEADER, OTHER)], ids=["last", "first"])
def test_goal_is_not_that_of_the_member_itself_where_another_one_has_more(known: tuple[Member, ...]) -> None:
    """The leader does not answer, and the member knows nothing of what it lacks."""
    of = {"b": status(OWN, raft_index=3, applied_index=3), "c": status(OTHER, raft_index=9, applied_index=9)}
    assert caught_up(Statuses(of, known)).problem() == "it has applied 3 of 9 entries"


def test_member_without_a_leader_says_nothing_of_the_goal() -> None:
    of = {"b": status(OWN, raft_index=6, applied_index=6), "c": status(OTHER, raft_index=9, leader=0)}
    assert caught_up(Statuses(of, (LEADER, OTHER, OWN))).problem() is None


def test_member_that_does_not_answer_has_not_caught_up() -> None:
    etcd = Statuses()
    del etcd.of["b"]
    with pytest.raises(EtcdUnreachable):
        caught_up(etcd).problem()
