"""A Lease as a value; whether its holder lives is judged by what changes, not by its clock."""

from datetime import UTC, datetime

from garboard.kube.lease import Lease, Observer, micro_time

HELD = Lease("7", "cp-1", 15.0, "2026-01-01T00:00:00.000000Z", ("https://a:2380",))


def test_lease_is_read_as_it_was_written() -> None:
    content = HELD.content("turn", "kube-system")
    assert isinstance(content, dict)
    assert Lease.read(content) == HELD


def test_strange_lease_is_nobodys() -> None:
    assert Lease.read({"metadata": None, "spec": {"holderIdentity": None}}) == Lease("", "", 0.0, "", ())


def test_holder_whose_clock_is_years_off_lives_as_long_as_its_lease_changes() -> None:
    observer = Observer()
    for second in range(0, 60, 5):
        renewed = micro_time(datetime(1999, 1, 1, 0, 0, second, tzinfo=UTC))
        assert not observer.is_dead(Lease("1", "cp-1", 15.0, renewed, ()), float(second))


def test_holder_is_dead_once_nothing_changed_for_its_duration() -> None:
    observer = Observer()
    assert not observer.is_dead(HELD, 100.0)
    assert not observer.is_dead(HELD, 115.0)
    assert observer.is_dead(HELD, 115.1)


def test_new_holder_begins_anew() -> None:
    observer = Observer()
    observer.is_dead(HELD, 100.0)
    assert not observer.is_dead(Lease("8", "cp-2", 15.0, HELD.renewed, ()), 120.0)
