"""How many servers an agent looks for."""

import time

from garboard.tunnel.agent.server_count import CountSource, LeaseCounter, ServerCount
from garboard.tunnel.metrics import Metrics
from tests.support.tunnel.leases import LeasesInMemory, lease


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
    store = LeasesInMemory(lease("a", time.time()), lease("b", time.time()))
    count = ServerCount(counts_leases=True)
    counter = LeaseCounter(store, count, lambda: None)
    counter.look()
    assert count.wanted == 2
    store.is_away = True
    counter.look()
    assert count.wanted == 2
    assert (
        'x_lease_lists_total{http_response_code="0",reason="unreachable"} 1\n'
        in Metrics("x_", counter.families()).text()
    )
