"""Leases: which are valid, what a server does with them, how agents count them."""

import time

from garboard.errors import ClusterUnreachable
from garboard.tunnel.agent.server_count import CountSource, LeaseCounter, ServerCount
from garboard.tunnel.leases import ServerLease, own_lease, valid_count
from garboard.tunnel.metrics import Metrics
from garboard.tunnel.server.lease_keeper import LeaseKeeper

NOW = 1_000_000.0


def lease(name: str, renewed_at: float | None, acquired_at: float | None = None) -> ServerLease:
    return ServerLease(name=name, holder=name, renewed_at=renewed_at, acquired_at=acquired_at, resource_version="7")


class Book:
    """Leases in memory; deleting another version than the one that is there does nothing."""

    def __init__(self, *leases: ServerLease) -> None:
        self.leases = {each.name: each for each in leases}
        self.is_away = False

    def all(self) -> tuple[ServerLease, ...]:
        if self.is_away:
            raise ClusterUnreachable("no answer")
        return tuple(self.leases.values())

    def hold(self, lease: ServerLease) -> None:
        self.all()
        self.leases[lease.name] = lease

    def delete(self, lease: ServerLease) -> None:
        if not lease.resource_version or self.leases[lease.name].resource_version == lease.resource_version:
            self.leases.pop(lease.name, None)


def test_lease_is_valid_until_its_time_is_over() -> None:
    assert lease("a", NOW - 29).is_valid(NOW)
    assert not lease("a", NOW - 30).is_valid(NOW)
    assert lease("a", None, NOW - 29).is_valid(NOW)
    assert not lease("a", None).is_valid(NOW)
    assert valid_count((lease("a", NOW), lease("b", NOW - 60)), NOW) == 1


def test_server_renews_its_own_lease_and_deletes_dead_ones() -> None:
    book = Book(lease("dead", NOW - 60), lease("alive", NOW - 10))
    keeper = LeaseKeeper(book, "s1", clock=lambda: NOW)
    keeper.tend()
    assert set(book.leases) == {"alive", "konnectivity-proxy-server-s1"}
    assert book.leases["konnectivity-proxy-server-s1"] == own_lease("s1", NOW)
    page = Metrics("x_", keeper.families()).text()
    assert "x_culled_leases_count 1\n" in page
    assert 'x_lease_delete_total{http_status_code="200",reason=""} 1\n' in page
    assert 'x_lease_list_latency_seconds_count{http_status_code="200"} 1\n' in page


def test_unreachable_api_server_does_not_end_the_keeper() -> None:
    book = Book()
    book.is_away = True
    keeper = LeaseKeeper(book, "s1", clock=lambda: NOW)
    keeper.tend()
    book.is_away = False
    keeper.tend()
    assert list(book.leases) == ["konnectivity-proxy-server-s1"]


def test_servers_are_counted_by_what_they_say() -> None:
    count = ServerCount()
    assert count.wanted == 1
    count.server_said("3")
    count.leases_said(9)
    assert count.wanted == 3
    for nonsense in ("", "0", "-1", "many", "²"):
        count.server_said(nonsense)
        assert count.wanted == 1


def test_servers_are_counted_by_leases() -> None:
    count = ServerCount(counts_leases=True)
    count.server_said("3")
    assert count.wanted == 3  # nothing waits for the leases
    count.leases_said(2)
    assert count.wanted == 2
    count.leases_said(0)
    assert count.wanted == 1


def test_larger_number_wins_where_that_is_asked_for() -> None:
    count = ServerCount(CountSource.MAX, counts_leases=True)
    count.server_said("3")
    count.leases_said(2)
    assert count.wanted == 3
    count.leases_said(5)
    assert count.wanted == 5


def test_last_count_stays_while_the_api_server_is_away() -> None:
    book = Book(lease("a", time.time()), lease("b", time.time()))
    count = ServerCount(counts_leases=True)
    counter = LeaseCounter(book, count, lambda: None)
    counter.look()
    assert count.wanted == 2
    book.is_away = True
    counter.look()
    assert count.wanted == 2
    assert (
        'x_lease_lists_total{http_response_code="0",reason="unreachable"} 1\n'
        in Metrics("x_", counter.families()).text()
    )
