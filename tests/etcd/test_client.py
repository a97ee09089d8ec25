"""The client beside etcd's own, and what it says when it gets no answer."""

import json
import socket
import subprocess
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from garboard.etcd import (
    EtcdAccess,
    EtcdClient,
    EtcdRefused,
    EtcdUnreachable,
    await_quorum,
    check_health,
    initial_cluster,
)
from garboard.etcd.values import Member
from garboard.lab.binaries import Binaries
from tests.support.etcd.cluster import EtcdCluster
from tools.harness.ports import free_ports

MakeCluster = Callable[..., AbstractContextManager[EtcdCluster]]


@pytest.mark.real
def test_members_and_status_are_those_that_etcdctl_shows(three: EtcdCluster, binaries: Binaries) -> None:
    of = three.certificates
    shown = subprocess.run(
        [
            binaries.locate("etcdctl", f"v{three.client().status(three.members['a'].client_url).version}"),
            f"--cacert={of.ca}", f"--cert={of.client}", f"--key={of.client_key}",
            f"--endpoints={three.members['a'].client_url}", "member", "list", "-w", "json",
        ],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    expected = {(int(each["ID"]), each["name"]) for each in json.loads(shown.stdout)["members"]}
    assert {(each.id, each.name) for each in three.client().members()} == expected
    statuses = {name: three.client().status(three.members[name].client_url) for name in three.members}
    assert {status.member_id for status in statuses.values()} == {number for number, _ in expected}
    assert len({status.leader for status in statuses.values()}) == 1
    assert all(status.raft_index > 0 and status.db_bytes > 0 and not status.errors for status in statuses.values())


def without_gateway() -> tuple[str, ...]:
    return ("--enable-grpc-gateway=false",)


def with_http_elsewhere() -> tuple[str, ...]:
    """The client port then serves gRPC alone."""
    return (f"--listen-client-http-urls=https://127.0.0.1:{free_ports(1)[0]}",)


@pytest.mark.real
@pytest.mark.parametrize("flags", [without_gateway, with_http_elsewhere])
def test_members_are_changed_where_the_client_port_has_no_json(
    make_cluster: MakeCluster, flags: Callable[[], tuple[str, ...]]
) -> None:
    with make_cluster("a", flags=flags()) as cluster:
        client, learner = cluster.client("a"), cluster.prepare("b")
        added, members = client.add_learner(learner.peer_url)
        assert {each.peer_urls[0] for each in members} == {each.peer_url for each in cluster.members.values()}
        assert (added.is_learner, added.has_started) == (True, False)
        status = client.status(client.endpoints[0])
        assert status.leader == status.member_id
        with pytest.raises(EtcdRefused, match="in sync with leader"):
            client.promote(added.id)
        client.remove(added.id)
        assert [member.name for member in client.sync()] == ["a"]
        with pytest.raises(EtcdRefused, match="member not found"):
            client.remove(added.id)


@pytest.mark.real
def test_endpoint_that_is_dead_is_passed_over_and_remembered_as_such(three: EtcdCluster) -> None:
    three.members["a"].kill()
    client = three.client("a", "b")
    await_quorum(client)  # it may have led
    assert len(client.members()) == 3
    client.sync()
    assert set(client.endpoints) == {member.client_url for member in three.members.values()}


@pytest.mark.real
def test_learner_among_the_endpoints_is_passed_over(alone: EtcdCluster) -> None:
    learner = alone.prepare("b")
    _, members = alone.client("a").add_learner(learner.peer_url)
    alone.start("b", ",".join(f"{each.name or 'b'}={each.peer_urls[0]}" for each in members))
    alone.await_answer("b", votes=False)
    assert len(alone.client("b", "a").members()) == 2


@pytest.mark.real
def test_health_names_who_is_down_and_knows_the_majority(three: EtcdCluster) -> None:
    three.members["c"].kill()
    client = three.client()
    health = await_quorum(client, timeout_s=10)
    assert [voter.name for voter in health.voters if voter.id in health.ills] == ["c"]
    by_name = {member.name: member for member in client.members()}
    assert health.has_quorum_without(by_name["c"])
    assert not health.has_quorum_without(by_name["a"])
    three.members["b"].kill()
    with pytest.raises(EtcdUnreachable, match="no majority of healthy members after 1 s"):
        await_quorum(client, timeout_s=1)


@pytest.mark.real
def test_member_without_a_leader_lists_nothing_instead_of_what_it_remembers(three: EtcdCluster) -> None:
    for name in "bc":
        three.members[name].kill()
    with pytest.raises(EtcdUnreachable):
        three.client("a").members()


@pytest.mark.real
def test_another_authority_is_told_with_a_hint_at_the_certificates(alone: EtcdCluster) -> None:
    with pytest.raises(EtcdUnreachable, match="not trusted") as caught:
        EtcdClient(tuple(member.client_url for member in alone.members.values()), EtcdAccess()).members()
    assert "--cert-dir" in (caught.value.hint or "")


@pytest.mark.real
def test_client_without_a_certificate_is_turned_away(alone: EtcdCluster) -> None:
    nobody = EtcdAccess(ca=alone.access.ca)
    with pytest.raises(EtcdUnreachable, match=r"handshake|connection broke"):
        EtcdClient(alone.client().endpoints, nobody).members()


def test_silent_endpoint_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(EtcdUnreachable, match="no answer in time"):
            EtcdClient((endpoint,), EtcdAccess()).members()


def test_no_endpoint_at_all_is_told() -> None:
    with pytest.raises(EtcdUnreachable, match="no endpoint is known"):
        EtcdClient((), EtcdAccess()).members()


def test_key_stays_out_of_the_repr() -> None:
    assert "secret" not in repr(EtcdAccess(key=b"secret"))


def test_member_without_a_name_goes_by_its_id_in_the_initial_cluster() -> None:
    members = (Member(0xAB, "", ("https://b:2380",)), Member(1, "a", ("https://a:2380",)))
    assert initial_cluster(members) == "ab=https://b:2380,a=https://a:2380"


def test_nobody_looked_at_is_no_majority() -> None:
    assert not check_health(EtcdClient((), EtcdAccess()), ()).has_quorum
