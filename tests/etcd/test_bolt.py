"""Buckets are read from files in etcd's format, and damaged files end in an error of ours, never in another.

The members in a database are those that the real etcd lists, whether it runs, has ended or was killed.
"""

import random

import pytest

from garboard.etcd import DatabaseUnreadable, EtcdMembers, stored_cluster_version, stored_members
from garboard.etcd.bolt import read_bucket
from tests.support.etcd.bolt_files import PAGE_SIZE, bolt_file, branch, bucket, inline, leaf, meta_page, reading
from tests.support.etcd.cluster import EtcdCluster

ITEMS = {b"8e9e05c52164694d": b'{"id": 1}', b"fd422379fda50e48": b'{"id": 2}'}
INLINE = bolt_file(leaf(2, {b"alarm": inline({}), b"members": inline(ITEMS)}, is_bucket=True))
OWN_PAGES = bolt_file(
    leaf(2, {b"members": bucket(3)}, is_bucket=True),
    branch(3, {b"8": 4, b"f": 5}),
    leaf(4, {b"8e9e05c52164694d": ITEMS[b"8e9e05c52164694d"]}),
    leaf(5, {b"fd422379fda50e48": ITEMS[b"fd422379fda50e48"]}),
)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(INLINE, id="a bucket within a value"),
        pytest.param(OWN_PAGES, id="a bucket with pages of its own"),
        pytest.param(b"\0" * PAGE_SIZE + INLINE[PAGE_SIZE:], id="the first meta page is damaged"),
        pytest.param(INLINE[:PAGE_SIZE] + b"\0" * PAGE_SIZE + INLINE[2 * PAGE_SIZE :], id="the second one is"),
        pytest.param(
            bolt_file(leaf(2, {b"members": inline(ITEMS)}, is_bucket=True), page_size=16384), id="larger pages"
        ),
    ],
)
def test_bucket_is_read(data: bytes) -> None:
    assert read_bucket(reading(data), b"members") == ITEMS


def test_page_that_runs_over_is_read_as_a_whole() -> None:
    items = {b"key": b"x" * 3 * PAGE_SIZE}
    data = bolt_file(leaf(2, {b"members": bucket(3)}, is_bucket=True), leaf(3, items, overflow=3))
    assert read_bucket(reading(data), b"members") == items


def test_missing_bucket_is_none() -> None:
    assert read_bucket(reading(INLINE), b"lease") is None


def test_later_transaction_counts() -> None:
    later = leaf(3, {b"members": inline({b"a": b"new"})}, is_bucket=True)
    data = bytearray(bolt_file(leaf(2, {b"members": inline({b"a": b"old"})}, is_bucket=True), later))
    data[:PAGE_SIZE] = meta_page(0, root=3, end=4, transaction=9)
    assert read_bucket(reading(bytes(data)), b"members") == {b"a": b"new"}


def test_commit_in_between_makes_the_read_begin_again() -> None:
    """The page that was read is of a transaction that has been overwritten."""
    new = bolt_file(leaf(2, {b"members": inline({b"a": b"new"})}, is_bucket=True))
    new = meta_page(0, root=2, end=3, transaction=20) + new[PAGE_SIZE:]
    reads = 0

    def read_at(offset: int, count: int) -> bytes:
        nonlocal reads
        reads += 1
        return (INLINE if reads <= 3 else new)[offset : offset + count]

    assert read_bucket(read_at, b"members") == {b"a": b"new"}


def test_file_that_never_rests_is_given_up() -> None:
    transaction = 10

    def read_at(offset: int, count: int) -> bytes:
        nonlocal transaction
        transaction += 1
        data = meta_page(0, root=2, end=3, transaction=transaction) + INLINE[PAGE_SIZE:]
        return data[offset : offset + count]

    with pytest.raises(DatabaseUnreadable, match="changes faster"):
        read_bucket(read_at, b"members")


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        pytest.param(b"\0" * 3 * PAGE_SIZE, "meta pages", id="zeros"),
        pytest.param(b"junk", "meta pages", id="no database"),
        pytest.param(OWN_PAGES[: 4 * PAGE_SIZE], "ends before", id="cut off"),
        pytest.param(bolt_file(branch(2, {b"a": 2})), "leads back", id="a cycle"),
        pytest.param(bolt_file(branch(2, {b"a": 99})), "out of bounds", id="a page that does not exist"),
        pytest.param(bolt_file(leaf(3, {})), "says that it is page 3", id="another page"),
        pytest.param(bolt_file(leaf(2, {}, overflow=5)), "with 5 more", id="too long"),
        pytest.param(bolt_file(meta_page(2, root=2, end=3, transaction=1)), "neither a branch", id="no tree"),
        pytest.param(bolt_file(leaf(2, {b"members": b"short"}, is_bucket=True)), "too short", id="half a bucket"),
        pytest.param(
            bolt_file(leaf(2, {b"members": bucket(0)}, is_bucket=True)), "too short", id="a bucket without its page"
        ),
        pytest.param(
            bolt_file(b"\x02" + b"\0" * 7 + b"\x02\0" + b"\xff\xff" + b"\0" * 4), "no room", id="too many elements"
        ),
    ],
)
def test_damage_is_named(data: bytes, problem: str) -> None:
    with pytest.raises(DatabaseUnreadable, match=problem):
        read_bucket(reading(data), b"members")


def test_random_damage_is_never_more_than_an_error_of_ours() -> None:
    source = random.Random(13)
    for _ in range(3000):
        data = bytearray(OWN_PAGES)
        for _ in range(source.randint(1, 8)):
            # Where there is something, and past the meta pages, whose checksums would end the story at once.
            page = source.randint(2, 5) * PAGE_SIZE
            data[page + source.randint(0, 80)] = source.randrange(256)
        try:
            read_bucket(reading(bytes(data)), b"members")
        except DatabaseUnreadable:
            continue


@pytest.mark.real
def test_running_etcd_and_its_file_agree_and_so_does_a_dead_one(three: EtcdCluster) -> None:
    listed = set(three.client().members())
    assert len(listed) == 3
    for name in "abc":
        three.await_stored(name)
    for name in "abc":
        three.members[name].kill()
        assert three.members[name].stored() == listed


@pytest.mark.real
def test_learner_and_removal_are_in_the_file(three: EtcdCluster) -> None:
    learner = three.prepare("d")
    members = EtcdMembers(three.client("a"))
    members.add("d", learner.peer_url)
    members.remove(three.members["c"].peer_url)
    listed = set(three.client("a").members())
    assert {(each.name, each.is_learner) for each in listed} == {("a", False), ("b", False), ("", True)}
    three.await_stored("a")


@pytest.mark.real
def test_one_member_alone_is_alone_in_its_file(alone: EtcdCluster) -> None:
    alone.await_stored("a")
    assert [member.name for member in alone.members["a"].stored()] == ["a"]


@pytest.mark.real
def test_file_that_grows_while_it_is_read_stays_readable(alone: EtcdCluster) -> None:
    """Adding and removing learners commits again and again."""
    learner = alone.prepare("b")
    members = EtcdMembers(alone.client("a"))
    for _ in range(10):
        members.add("b", learner.peer_url)
        assert any(member.name == "a" for member in alone.members["a"].stored())
        members.remove(learner.peer_url)


def test_cluster_version_is_that_of_the_file() -> None:
    data = bolt_file(leaf(2, {b"cluster": inline({b"clusterVersion": b"3.7.0"})}, is_bucket=True))
    assert stored_cluster_version(reading(data)) == "3.7.0"


@pytest.mark.parametrize(
    "data",
    [b"", bolt_file(leaf(2, {b"lease": inline({})}, is_bucket=True)),
     bolt_file(leaf(2, {b"cluster": inline({b"other": b"1"})}, is_bucket=True))],
    ids=["no byte", "no bucket", "no version"],
)  # fmt: skip
def test_file_that_says_no_cluster_version_has_none(data: bytes) -> None:
    assert stored_cluster_version(reading(data)) == ""


def test_file_without_a_byte_names_nobody() -> None:
    assert stored_members(reading(b"")) == ()


def test_database_without_members_names_nobody() -> None:
    assert stored_members(reading(bolt_file(leaf(2, {b"lease": inline({})}, is_bucket=True)))) == ()


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        pytest.param(b"1", b"{", "no JSON", id="no JSON"),
        pytest.param(b"x", b"{}", "no JSON", id="no id"),
        pytest.param(b"1", b'{"id": 2}', "another id", id="the id of another"),
        pytest.param(b"1", b"[]", "another id", id="no mapping"),
        pytest.param(b"1", b"[" * 65537, "65537 bytes", id="too long"),
    ],
)
def test_member_that_is_none_is_refused(key: bytes, value: bytes, problem: str) -> None:
    page = leaf(2, {b"members": inline({key: value})}, is_bucket=True, overflow=len(value) // 4096)
    with pytest.raises(DatabaseUnreadable, match=problem):
        stored_members(reading(bolt_file(page)))
