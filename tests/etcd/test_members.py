"""Members of a real etcd come and go, and what would do harm is refused."""

import dataclasses
import time

import pytest

from garboard.errors import GarboardError
from garboard.etcd import CaughtUp, EtcdMembers, EtcdUnreachable, Health, Member, MembershipRefused, check_health
from garboard.retry import Clock, Pauses, wait_until
from tests.support.etcd.cluster import EtcdCluster

pytestmark = pytest.mark.real


def members_of(cluster: EtcdCluster, *names: str, **more: object) -> tuple[EtcdMembers, list[str]]:
    told: list[str] = []
    return EtcdMembers(cluster.client(*names), told.append, **more), told  # type: ignore[arg-type]


def adding(cluster: EtcdCluster, name: str) -> tuple[str, str]:
    return name, cluster.members[name].peer_url


def promoting(cluster: EtcdCluster, name: str, timeout_s: float = 30.0) -> tuple[str, float]:
    return cluster.members[name].peer_url, timeout_s


def names_of(cluster: EtcdCluster, *names: str) -> set[tuple[str, bool]]:
    return {(member.name, member.is_learner) for member in cluster.client(*names).members()}


def test_learner_is_added_started_and_promoted_with_its_progress_told(alone: EtcdCluster) -> None:
    members, told = members_of(alone, "a")
    alone.prepare("b")
    found = members.add(*adding(alone, "b")).initial_cluster
    assert set(found.split(",")) == {f"{name}={alone.members[name].peer_url}" for name in "ab"}
    assert names_of(alone, "a") == {("a", False), ("", True)}
    alone.start("b", found)
    members.promote(*promoting(alone, "b"))
    assert names_of(alone, "a") == {("a", False), ("b", False)}
    assert any("raft index" in line and " MB of " in line for line in told), told


def test_adding_again_finds_the_learner_that_never_started(alone: EtcdCluster) -> None:
    members, _ = members_of(alone, "a")
    alone.prepare("b")
    assert members.add(*adding(alone, "b")) == members.add(*adding(alone, "b"))
    assert len(alone.client("a").members()) == 2


def test_adding_and_promoting_again_leaves_a_member_that_votes(three: EtcdCluster) -> None:
    members, _ = members_of(three)
    before = three.client().members()
    found = members.add(*adding(three, "b")).initial_cluster
    members.promote(*promoting(three, "b"))
    assert set(found.split(",")) == {f"{each.name}={each.peer_url}" for each in three.members.values()}
    assert three.client().members() == before


def test_learner_whose_data_are_gone_is_added_anew(alone: EtcdCluster) -> None:
    members, _ = members_of(alone, "a")
    alone.prepare("b")
    alone.start("b", members.add(*adding(alone, "b")).initial_cluster)
    alone.await_answer("b", votes=False)
    alone.members["b"].kill()
    alone.forget_data("b")
    wiped, told = members_of(alone, "a", has_data=lambda: False)
    alone.start("b", wiped.add(*adding(alone, "b")).initial_cluster)
    wiped.promote(*promoting(alone, "b"))
    assert names_of(alone, "a") == {("a", False), ("b", False)}
    assert any("removed the learner b" in line for line in told)


def test_data_of_a_member_that_was_removed_are_told_before_another_is_added(alone: EtcdCluster) -> None:
    alone.prepare("b")
    with pytest.raises(MembershipRefused, match="does not have any more") as caught:
        members_of(alone, "a", has_data=lambda: True)[0].add(*adding(alone, "b"))
    assert "garboard undo" in (caught.value.hint or "")
    assert len(alone.client("a").members()) == 1


def test_voter_whose_data_are_gone_is_not_taken_away(three: EtcdCluster) -> None:
    members, _ = members_of(three, has_data=lambda: False)
    with pytest.raises(MembershipRefused, match=r"voting member b \(.*its data are not on this machine") as caught:
        members.add(*adding(three, "b"))
    assert "etcdctl member remove" in (caught.value.hint or "")
    assert len(three.client().members()) == 3


def test_second_member_of_one_name_is_refused(alone: EtcdCluster) -> None:
    members, _ = members_of(alone, "a")
    with pytest.raises(MembershipRefused, match=r"a member a .* already"):
        members.add("a", "https://127.0.0.1:9")


def test_learner_of_a_join_that_died_makes_room_and_others_do_not(alone: EtcdCluster) -> None:
    dead = alone.prepare("dead")
    members_of(alone, "a")[0].add(*adding(alone, "dead"))
    alone.prepare("b")
    patient, told = members_of(alone, "a", change_within_s=0.0)
    with pytest.raises(Exception, match="too many learner"):
        patient.add(*adding(alone, "b"))
    heir, told = members_of(alone, "a", abandoned=lambda: (dead.peer_url, alone.members["a"].peer_url))
    heir.add(*adding(alone, "b"))
    assert {member.peer_urls[0] for member in alone.client("a").members()} == {
        alone.members[name].peer_url for name in "ab"
    }
    assert any("died" in line for line in told)


def test_learner_that_gets_a_vote_between_look_and_removal_is_never_removed(alone: EtcdCluster) -> None:
    """The node that was taken for dead was only slow."""
    slow, _ = members_of(alone, "a")
    peer_url = alone.prepare("slow").peer_url
    alone.start("slow", slow.add(*adding(alone, "slow")).initial_cluster)
    alone.await_answer("slow", votes=False)
    promoted: list[str] = []

    def abandoned() -> tuple[str, ...]:
        """Asked for after the members have been listed."""
        if not promoted:
            slow.promote(peer_url, timeout_s=30.0)
            promoted.append(peer_url)
        return (peer_url,)

    heir, told = members_of(alone, "a", abandoned=abandoned)
    alone.prepare("b")
    heir.add(*adding(alone, "b"))
    assert names_of(alone, "a", "slow") == {("a", False), ("slow", False), ("", True)}
    assert any("has got a vote in between" in line for line in told)


def test_every_change_is_confirmed_first_and_none_is_made_without(alone: EtcdCluster) -> None:
    class Lost(Exception):
        pass

    def lost() -> None:
        raise Lost

    peer_url = alone.prepare("b").peer_url
    members, _ = members_of(alone, "a", confirm=lost)
    with pytest.raises(Lost):
        members.add("b", peer_url)
    assert names_of(alone, "a") == {("a", False)}
    alone.start("b", members_of(alone, "a")[0].add("b", peer_url).initial_cluster)
    alone.await_answer("b", votes=False)
    with pytest.raises(Lost):
        members.promote(peer_url, 30.0)
    with pytest.raises(Lost):
        members.remove(peer_url)
    assert names_of(alone, "a") == {("a", False), ("b", True)}


def test_what_the_dead_left_is_forgotten_once_it_is_cleared_away(alone: EtcdCluster) -> None:
    dead = alone.prepare("dead")
    members_of(alone, "a")[0].add(*adding(alone, "dead"))
    seen: list[int] = []
    members, _ = members_of(
        alone,
        "a",
        abandoned=lambda: (dead.peer_url,),
        forget_abandoned=lambda: seen.append(len(alone.client("a").members())),
    )
    alone.prepare("b")
    members.add(*adding(alone, "b"))
    assert seen == [1]


def test_learner_that_does_not_start_is_told_as_the_cause(alone: EtcdCluster) -> None:
    members, _ = members_of(alone, "a")
    alone.prepare("b")
    members.add(*adding(alone, "b"))
    with pytest.raises(MembershipRefused, match="has no vote after 1 s: its etcd has not started"):
        members.promote(*promoting(alone, "b", timeout_s=1.0))


def test_nothing_to_promote_is_told_at_once(alone: EtcdCluster) -> None:
    with pytest.raises(MembershipRefused, match="no member with the peer URL"):
        members_of(alone, "a")[0].promote("https://127.0.0.1:9", timeout_s=30)


@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_member_leaves_and_the_others_go_on(three: EtcdCluster, name: str) -> None:
    """Asked at the one that leaves, which may lead."""
    members, told = members_of(three, name)
    members.remove(three.members[name].peer_url)
    others = [each for each in "abc" if each != name]
    assert names_of(three, *others) == {(each, False) for each in others}
    assert told[-1].endswith("any more")


def test_member_that_has_gone_is_no_failure(three: EtcdCluster) -> None:
    members, _ = members_of(three)
    members.remove("https://127.0.0.1:9")
    assert len(three.client().members()) == 3


def test_another_member_with_the_address_of_the_one_to_remove_stays(alone: EtcdCluster) -> None:
    """The machine was set up anew, and has another id since."""
    members, told = members_of(alone, "a")
    alone.prepare("b")
    former = members.add(*adding(alone, "b")).member
    members.remove(alone.members["b"].peer_url, former.hex_id)
    assert len(alone.client("a").members()) == 1
    again = members.add(*adding(alone, "b")).member
    assert again.id != former.id
    members.remove(alone.members["b"].peer_url, former.hex_id)
    assert again.id in {member.id for member in alone.client("a").members()}
    assert any("came later" in line for line in told)


def test_dead_member_can_be_removed(three: EtcdCluster) -> None:
    three.members["b"].kill()
    members, _ = members_of(three, "b", "c")
    members.remove(three.members["b"].peer_url)
    assert names_of(three, "a", "c") == {("a", False), ("c", False)}


@pytest.mark.parametrize("stop", ["kill", "freeze"])
def test_removal_that_would_cost_the_majority_is_refused_with_who_is_down(three: EtcdCluster, stop: str) -> None:
    getattr(three.members["c"], stop)()
    members, _ = members_of(three, "a")
    with pytest.raises(MembershipRefused, match=r"would have no majority: c .*(refused|no answer in time)") as caught:
        members.remove(three.members["b"].peer_url)
    assert caught.value.error_class == "quorum"
    assert len(three.client("a").members()) == 3


def test_last_member_is_not_removed(alone: EtcdCluster) -> None:
    with pytest.raises(MembershipRefused, match="only voting member"):
        members_of(alone)[0].remove(alone.members["a"].peer_url)
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

    members = dataclasses.replace(
        members_of(three)[0], report=told.append, clock=Clock(sleep=thaw), change_within_s=60.0
    )
    three.prepare("d")
    assert "d=" in members.add(*adding(three, "d")).initial_cluster
    assert any("trying for up to 60 s" in line for line in told)


def test_members_that_never_come_back_end_in_an_error_with_each_reason(three: EtcdCluster) -> None:
    for name in "abc":
        three.members[name].kill()
    members, _ = members_of(three, change_within_s=1.0)
    with pytest.raises(EtcdUnreachable) as caught:
        members.remove(three.members["b"].peer_url)
    assert caught.value.message.count("connection refused") == 3
    assert caught.value.exit_code == 5


def test_member_is_spared_only_if_the_others_have_a_majority_of_all(three: EtcdCluster) -> None:
    """To remove a member of three, one of them down, leaves one of two; to take it away for a while, one of three."""
    client = three.client()
    urls = {name: three.members[name].peer_url for name in "abc"}
    listed = client.members()
    health = check_health(client, listed)
    assert [health.spares(url) for url in urls.values()] == [True, True, True]
    three.members["c"].kill()
    health = check_health(client, listed)
    assert health.has_quorum
    assert [health.spares(url) for url in urls.values()] == [False, False, True]
    assert health.unhealthy().startswith("c ")


@pytest.mark.parametrize(
    ("voters", "ills", "is_spared"),
    [(1, "", True), (1, "a", True), (2, "", True), (2, "b", False), (2, "a", True), (5, "bc", False), (5, "b", True)],
)
def test_member_of_one_or_two_is_spared_if_all_others_are_healthy(voters: int, ills: str, is_spared: bool) -> None:
    members = tuple(Member(index, name, (f"https://{name}",), ()) for index, name in enumerate("abcde"[:voters]))
    health = Health(members, {"abcde".index(name): "no answer" for name in ills})
    assert health.spares("https://a") is is_spared


def test_member_that_was_away_has_caught_up_when_it_has_what_the_others_had(three: EtcdCluster) -> None:
    three.members["c"].freeze()
    for name in "ab":
        url = three.members[name].peer_url
        assert CaughtUp(three.client("a", "b"), url).problem() is None
    lagging = CaughtUp(three.client("a", "b", "c"), three.members["c"].peer_url)
    with pytest.raises(EtcdUnreachable):
        lagging.problem()
    three.members["c"].thaw()
    assert wait_until(lambda: _problem(lagging), timeout_s=60, pauses=Pauses.every(0.1)) is None
    assert CaughtUp(three.client("a"), "https://127.0.0.1:1").problem() == "etcd has no member https://127.0.0.1:1"


def _problem(member: CaughtUp) -> str | None:
    try:
        return member.problem()
    except GarboardError as error:
        return error.message
