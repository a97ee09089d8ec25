"""A Lease as a value, whose holder lives while it changes."""

from datetime import UTC, datetime

from garboard.documents import Json
from garboard.kube import LeaseClaim, LeasePayload
from garboard.kube.leases import Lease, LeaseObserver, micro_time

PAYLOADS = (LeasePayload("etcd-member", "https://a:2380"), LeasePayload("coordinator", "cp-1/20261118T1000"))
LEASE = Lease("7", "cp-1", 15.0, "2026-01-01T00:00:00.000000Z", PAYLOADS, transitions=3)


def test_lease_is_read_as_it_was_written() -> None:
    content = LEASE.content("lease", "kube-system")
    assert isinstance(content, dict)
    assert Lease.read(content) == LEASE


def test_lease_of_an_earlier_release_names_members_of_etcd() -> None:
    annotations: Json = {"garboard.dev/etcd-peer-urls": "https://a:2380,https://b:2380"}
    found = Lease.read({"metadata": {"annotations": annotations}})
    assert list(map(str, found.payloads)) == ["etcd-member:https://a:2380", "etcd-member:https://b:2380"]


def test_strange_lease_is_nobodys() -> None:
    assert Lease.read({"metadata": None, "spec": {"holderIdentity": None}}) == Lease("", "", 0.0, "", ())


def test_holder_whose_clock_is_years_off_lives_as_long_as_its_lease_changes() -> None:
    observer = LeaseObserver()
    for second in range(0, 60, 5):
        renewed = micro_time(datetime(1999, 1, 1, 0, 0, second, tzinfo=UTC))
        assert not observer.is_dead(Lease("1", "cp-1", 15.0, renewed, ()), float(second))


def test_holder_is_dead_once_nothing_changed_for_its_duration() -> None:
    observer = LeaseObserver()
    assert not observer.is_dead(LEASE, 100.0)
    assert not observer.is_dead(LEASE, 115.0)
    assert observer.is_dead(LEASE, 115.1)


def test_new_holder_begins_anew() -> None:
    observer = LeaseObserver()
    observer.is_dead(LEASE, 100.0)
    assert not observer.is_dead(Lease("8", "cp-2", 15.0, LEASE.renewed, ()), 120.0)


def test_token_changes_with_the_holder_and_not_when_the_same_one_comes_again() -> None:
    assert LeaseClaim(name="lease", namespace="kube-system", holder="cp-1").acquired(LEASE).transitions == 3
    assert LeaseClaim(name="lease", namespace="kube-system", holder="cp-2").acquired(LEASE).transitions == 4
    assert LeaseClaim(name="lease", namespace="kube-system", holder="cp-2").acquired(None).transitions == 0


def test_lease_that_was_given_up_is_a_new_one_for_whoever_takes_it() -> None:
    free = LEASE.freed(LEASE.payloads)
    assert (free.holder, free.payloads, free.transitions) == ("", LEASE.payloads, 3)
    assert LeaseClaim(name="lease", namespace="kube-system", holder="cp-1").acquired(free).transitions == 4
