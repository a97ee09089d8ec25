"""Members of a real etcd come and go, and what would do harm is refused."""

import dataclasses
import time

import pytest

from garboard.engine import AddMember, PromoteMember, RemoveMember
from garboard.etcd import EtcdMembers, EtcdUnreachable, MembershipRefused
from tests.etcd.cluster import EtcdCluster

pytestmark = pytest.mark.real


def hand(cluster: EtcdCluster, *names: str, **more: object) -> tuple[EtcdMembers, list[str]]:
    told: list[str] = []
    return EtcdMembers(cluster.client(*names), told.append, **more), told  # type: ignore[arg-type]


def adding(cluster: EtcdCluster, name: str) -> AddMember:
    return AddMember(name=name, peer_url=cluster.members[name].peer_url, outcome="members")


def promoting(cluster: EtcdCluster, name: str, timeout_s: float = 30.0) -> PromoteMember:
    return PromoteMember(peer_url=cluster.members[name].peer_url, timeout_s=timeout_s)


def names_of(cluster: EtcdCluster, *names: str) -> set[tuple[str, bool]]:
    return {(member.name, member.is_learner) for member in cluster.client(*names).members()}


def test_learner_is_added_started_and_promoted_with_its_progress_told(alone: EtcdCluster) -> None:
    members, told = hand(alone, "a")
    alone.prepare("b")
    found = members.add(adding(alone, "b"))
    assert set(found.split(",")) == {f"{name}={alone.members[name].peer_url}" for name in "ab"}
    assert names_of(alone, "a") == {("a", False), ("", True)}
    alone.start("b", found)
    members.promote(promoting(alone, "b"))
    assert names_of(alone, "a") == {("a", False), ("b", False)}
    assert any("raft index" in line and " MB of " in line for line in told), told


def test_adding_again_finds_the_learner_that_never_started(alone: EtcdCluster) -> None:
    members, _ = hand(alone, "a")
    alone.prepare("b")
    assert members.add(adding(alone, "b")) == members.add(adding(alone, "b"))
    assert len(alone.client("a").members()) == 2


def test_adding_and_promoting_again_leaves_a_member_that_votes(three: EtcdCluster) -> None:
    members, _ = hand(three)
    before = three.client().members()
    found = members.add(adding(three, "b"))
    members.promote(promoting(three, "b"))
    assert set(found.split(",")) == {f"{each.name}={each.peer_url}" for each in three.members.values()}
    assert three.client().members() == before


def test_learner_whose_data_are_gone_is_added_anew(alone: EtcdCluster) -> None:
    members, _ = hand(alone, "a")
    alone.prepare("b")
    alone.start("b", members.add(adding(alone, "b")))
    alone.await_answer("b", votes=False)
    alone.members["b"].kill()
    alone.forget_data("b")
    wiped, told = hand(alone, "a", has_data=lambda: False)
    alone.start("b", wiped.add(adding(alone, "b")))
    wiped.promote(promoting(alone, "b"))
    assert names_of(alone, "a") == {("a", False), ("b", False)}
    assert any("removed the learner b" in line for line in told)


def test_data_of_a_member_that_was_removed_are_told_before_another_is_added(alone: EtcdCluster) -> None:
    alone.prepare("b")
    with pytest.raises(MembershipRefused, match="does not have any more") as caught:
        hand(alone, "a", has_data=lambda: True)[0].add(adding(alone, "b"))
    assert "garboard undo" in (caught.value.hint or "")
    assert len(alone.client("a").members()) == 1


def test_voter_whose_data_are_gone_is_not_taken_away(three: EtcdCluster) -> None:
    members, _ = hand(three, has_data=lambda: False)
    with pytest.raises(MembershipRefused, match=r"voting member b \(.*its data are not on this machine") as caught:
        members.add(adding(three, "b"))
    assert "etcdctl member remove" in (caught.value.hint or "")
    assert len(three.client().members()) == 3


def test_second_member_of_one_name_is_refused(alone: EtcdCluster) -> None:
    members, _ = hand(alone, "a")
    with pytest.raises(MembershipRefused, match=r"a member a .* already"):
        members.add(AddMember(name="a", peer_url="https://127.0.0.1:9", outcome="members"))


def test_learner_of_a_join_that_died_makes_room_and_others_do_not(alone: EtcdCluster) -> None:
    dead = alone.prepare("dead")
    hand(alone, "a")[0].add(adding(alone, "dead"))
    alone.prepare("b")
    patient, told = hand(alone, "a", change_within_s=0.0)
    with pytest.raises(Exception, match="too many learner"):
        patient.add(adding(alone, "b"))
    heir, told = hand(alone, "a", abandoned=lambda: (dead.peer_url, alone.members["a"].peer_url))
    heir.add(adding(alone, "b"))
    assert {member.peer_urls[0] for member in alone.client("a").members()} == {
        alone.members[name].peer_url for name in "ab"
    }
    assert any("died" in line for line in told)


def test_learner_that_does_not_start_is_told_as_the_cause(alone: EtcdCluster) -> None:
    members, _ = hand(alone, "a")
    alone.prepare("b")
    members.add(adding(alone, "b"))
    with pytest.raises(MembershipRefused, match="has no vote after 1 s: its etcd has not started"):
        members.promote(promoting(alone, "b", timeout_s=1.0))


def test_nothing_to_promote_is_told_at_once(alone: EtcdCluster) -> None:
    with pytest.raises(MembershipRefused, match="no member with the peer URL"):
        hand(alone, "a")[0].promote(PromoteMember(peer_url="https://127.0.0.1:9", timeout_s=30))


@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_member_leaves_and_the_others_go_on(three: EtcdCluster, name: str) -> None:
    """Asked at the one that leaves, which may lead."""
    members, told = hand(three, name)
    members.remove(RemoveMember(peer_url=three.members[name].peer_url))
    others = [each for each in "abc" if each != name]
    assert names_of(three, *others) == {(each, False) for each in others}
    assert told[-1].endswith("any more")


def test_member_that_has_gone_is_no_failure(three: EtcdCluster) -> None:
    members, _ = hand(three)
    members.remove(RemoveMember(peer_url="https://127.0.0.1:9"))
    assert len(three.client().members()) == 3


def test_dead_member_can_be_removed(three: EtcdCluster) -> None:
    three.members["b"].kill()
    members, _ = hand(three, "b", "c")
    members.remove(RemoveMember(peer_url=three.members["b"].peer_url))
    assert names_of(three, "a", "c") == {("a", False), ("c", False)}


@pytest.mark.parametrize("stop", ["kill", "freeze"])
def test_removal_that_would_cost_the_majority_is_refused_with_who_is_down(three: EtcdCluster, stop: str) -> None:
    getattr(three.members["c"], stop)()
    members, _ = hand(three, "a")
    with pytest.raises(MembershipRefused, match=r"would have no majority: c .*(refused|no answer in time)") as caught:
        members.remove(RemoveMember(peer_url=three.members["b"].peer_url))
    assert caught.value.error_class == "quorum"
    assert len(three.client("a").members()) == 3


def test_last_member_is_not_removed(alone: EtcdCluster) -> None:
    with pytest.raises(MembershipRefused, match="only voting member"):
        hand(alone)[0].remove(RemoveMember(peer_url=alone.members["a"].peer_url))
    assert len(alone.client().members()) == 1


def test_etcd_that_is_away_for_a_while_is_tried_again(three: EtcdCluster) -> None:
    """Without a majority nothing can be listed; once it is back, the change happens."""
    for name in "bc":
        three.members[name].freeze()
    told: list[str] = []

    def thaw(seconds: float) -> None:
        for name in "bc":
            three.members[name].thaw()
        time.sleep(seconds)

    members = dataclasses.replace(hand(three)[0], report=told.append, sleep=thaw, change_within_s=60.0)
    three.prepare("d")
    assert "d=" in members.add(adding(three, "d"))
    assert any("trying for up to 60 s" in line for line in told)


def test_members_that_never_come_back_end_in_an_error_with_each_reason(three: EtcdCluster) -> None:
    for name in "abc":
        three.members[name].kill()
    members, _ = hand(three, change_within_s=1.0)
    with pytest.raises(EtcdUnreachable) as caught:
        members.remove(RemoveMember(peer_url=three.members["b"].peer_url))
    assert caught.value.message.count("connection refused") == 3
    assert caught.value.exit_code == 5
