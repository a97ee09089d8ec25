"""What a server does with leases: renew its own, delete those that expired."""

import asyncio

import pytest

from garboard.tunnel.leases import DURATION_S, RENEW_EVERY_S, RENEW_JITTER, own_lease
from garboard.tunnel.metrics import Metrics
from garboard.tunnel.server.lease_controller import LeaseController
from tests.support.tunnel.leases import LeasesInMemory, lease

NOW = 1_000_000.0


def test_server_renews_its_own_lease_and_deletes_dead_ones() -> None:
    store = LeasesInMemory(lease("dead", NOW - 60), lease("alive", NOW - 10))
    controller = LeaseController(store, "s1", clock=lambda: NOW)
    controller.tend()
    assert set(store.leases) == {"alive", "konnectivity-proxy-server-s1"}
    assert store.leases["konnectivity-proxy-server-s1"] == own_lease("s1", NOW)
    page = Metrics("x_", controller.families()).text()
    assert "x_culled_leases_count 1\n" in page
    assert 'x_lease_delete_total{http_status_code="200",reason=""} 1\n' in page
    assert 'x_lease_list_latency_seconds_count{http_status_code="200"} 1\n' in page


def test_unreachable_api_server_does_not_end_the_keeper() -> None:
    store = LeasesInMemory()
    store.is_away = True
    controller = LeaseController(store, "s1", clock=lambda: NOW)
    controller.tend()
    store.is_away = False
    controller.tend()
    assert list(store.leases) == ["konnectivity-proxy-server-s1"]


def test_lease_outlives_a_renewal_that_failed() -> None:
    """The one before, the one that failed, and the next, each as late as it may be."""
    latest_s = RENEW_EVERY_S * (1 + RENEW_JITTER)
    assert 2 * latest_s < DURATION_S
    store = LeasesInMemory()
    now = [NOW]
    controller = LeaseController(store, "s1", clock=lambda: now[0])
    assert controller.tend()
    now[0] += latest_s
    store.is_away = True
    assert not controller.tend()
    now[0] += latest_s
    assert store.leases["konnectivity-proxy-server-s1"].is_valid(now[0])


def test_failed_renewal_is_tried_again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    store = LeasesInMemory()
    store.is_away = True
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        store.is_away = len(pauses) < 2
        if len(pauses) == 3:
            raise asyncio.CancelledError

    monkeypatch.setattr("garboard.tunnel.server.lease_controller.asyncio.sleep", sleep)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(LeaseController(store, "s1", clock=lambda: NOW).run())
    assert pauses[0] < 3
    assert pauses[1] < 3
    assert pauses[2] >= RENEW_EVERY_S
