"""Snapshots of a real etcd, and a leader that goes elsewhere."""

import hashlib
import re
import subprocess
from pathlib import Path

import pytest

from garboard.etcd import EtcdUnreachable, Leadership, MembershipRefused, save_snapshot
from garboard.etcd.bolt import read_bucket
from garboard.etcd.errors import DatabaseUnreadable
from garboard.etcd.maintenance import SnapshotDigest
from garboard.lab.binaries import Binaries
from tests.support.etcd.cluster import EtcdCluster

PAGES = b"x" * 1024
WHOLE = PAGES + hashlib.sha256(PAGES).digest()


@pytest.mark.parametrize("size", [1, 31, 32, 33, 512, 5000])
def test_digest_is_told_from_the_data_however_they_are_cut(size: int) -> None:
    digest = SnapshotDigest()
    for start in range(0, len(WHOLE), size):
        digest.add(WHOLE[start : start + size])
    assert digest.verified() == hashlib.sha256(PAGES).hexdigest()


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(WHOLE[:-1], id="cut off"),
        pytest.param(PAGES, id="no digest"),
        pytest.param(b"y" + WHOLE[1:], id="another byte"),
        pytest.param(WHOLE[512:], id="the beginning is missing"),
        pytest.param(b"", id="nothing"),
        pytest.param(hashlib.sha256(b"").digest(), id="no data"),
    ],
)
def test_snapshot_that_is_not_whole_is_refused(data: bytes) -> None:
    digest = SnapshotDigest()
    digest.add(data)
    if data == hashlib.sha256(b"").digest():
        assert digest.verified()  # etcd's own tools take it, too
        return
    with pytest.raises(DatabaseUnreadable, match="damaged or not complete"):
        digest.verified()


def etcdctl(cluster: EtcdCluster, binaries: Binaries, *words: str | Path, data: bytes = b"") -> None:
    url, of = cluster.members["a"].client_url, cluster.certificates
    program = binaries.locate("etcdctl", f"v{cluster.client().status(url).version}")
    access = (f"--cacert={of.ca}", f"--cert={of.client}", f"--key={of.client_key}", f"--endpoints={url}")
    subprocess.run([program, *access, *words], input=data, check=True, capture_output=True)


@pytest.mark.real
def test_snapshot_holds_what_that_of_etcds_own_tool_holds(
    alone: EtcdCluster, binaries: Binaries, tmp_path: Path
) -> None:
    etcdctl(alone, binaries, "put", "key", data=b"x" * 1_000_000)
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    etcdctl(alone, binaries, "snapshot", "save", theirs)
    with ours.open("wb") as file:
        digest = save_snapshot(alone.client(), alone.members["a"].client_url, file.write)
    data, expected = ours.read_bytes(), theirs.read_bytes()
    assert hashlib.sha256(data[:-32]).hexdigest() == digest
    assert len(data) == len(expected)
    # Every snapshot begins with a commit of its own, so that the pages are others.
    for bucket in (b"key", b"members"):
        found = read_bucket(lambda offset, count: data[offset : offset + count], bucket)
        assert found
        assert found == read_bucket(lambda offset, count: expected[offset : offset + count], bucket)


@pytest.mark.real
def test_snapshot_of_a_member_that_is_down_is_refused_with_the_reason(alone: EtcdCluster) -> None:
    client, url = alone.client(), alone.members["a"].client_url
    alone.members["a"].kill()
    with pytest.raises(EtcdUnreachable, match=r"send a snapshot: .*connection refused"):
        save_snapshot(client, url, lambda _data: None)


@pytest.mark.real
def test_member_that_dies_in_the_middle_of_a_snapshot_is_told(alone: EtcdCluster, binaries: Binaries) -> None:
    for number in range(8):
        etcdctl(alone, binaries, "put", f"key-{number}", data=b"x" * 1_000_000)
    came: list[int] = []

    def take(data: bytes) -> None:
        came.append(len(data))
        alone.members["a"].kill()

    with pytest.raises(EtcdUnreachable, match="the connection broke"):
        save_snapshot(alone.client(), alone.members["a"].client_url, take)
    assert came


def leader_of(cluster: EtcdCluster, *names: str) -> str:
    client = cluster.client(*names)
    leader = client.status(client.endpoints[0]).leader
    return next(each.name for each in client.members() if each.id == leader)


@pytest.mark.real
def test_leader_goes_to_another_member_and_stays_there(three: EtcdCluster) -> None:
    former = leader_of(three)
    told: list[str] = []
    Leadership(three.client(), three.members[former].peer_url, told.append).move(10.0)
    new = leader_of(three)
    assert new != former
    assert len(told) == 1
    assert re.search(rf"{new} .* is to lead instead of {former}", told[0])
    Leadership(three.client(), three.members[former].peer_url, told.append).move(10.0)
    assert (leader_of(three), len(told)) == (new, 1), "already so"


@pytest.mark.real
def test_leader_without_a_healthy_successor_stays(alone: EtcdCluster) -> None:
    learner = alone.prepare("b")
    alone.client("a").add_learner(learner.peer_url)
    leadership = Leadership(alone.client("a"), alone.members["a"].peer_url, print)
    with pytest.raises(MembershipRefused, match="no other voting member is healthy: there is no other one") as caught:
        leadership.move(10.0)
    assert caught.value.error_class == "leader"


@pytest.mark.real
def test_member_that_is_frozen_is_not_chosen_to_lead(three: EtcdCluster) -> None:
    former = leader_of(three)
    frozen, healthy = (name for name in three.members if name != former)
    three.members[frozen].freeze()
    Leadership(three.client(), three.members[former].peer_url, print).move(20.0)
    assert leader_of(three, healthy) == healthy


@pytest.mark.real
def test_member_that_etcd_does_not_have_is_named(alone: EtcdCluster) -> None:
    with pytest.raises(MembershipRefused, match=r"no member with the peer URL https://192\.0\.2\.9:2380"):
        Leadership(alone.client(), "https://192.0.2.9:2380", print).move(1.0)
