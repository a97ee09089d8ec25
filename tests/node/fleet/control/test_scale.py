"""What a controller costs with a thousand installed clusters: requests, memory, and nothing once it has settled."""

import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from garboard.lab.binaries import Binaries
from garboard.model import DEFAULT_VERSION
from garboard.retry import Pauses, wait_until
from tests.support.fleet.controller_process import ControllerProcess
from tools.harness.fleet_load import FleetServer, fleet_server, memory_mib

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]
MOST_MIB = 300


@pytest.fixture
def server(binaries: Binaries, tmp_path: Path) -> Iterator[FleetServer]:
    with fleet_server(binaries, str(DEFAULT_VERSION), tmp_path) as running:
        yield running


def decisions(log: Path) -> float:
    """Return how many decisions the controller that began last has made; none as long as it cannot be asked."""
    urls = re.findall(r"metrics: (\S+)", log.read_text())
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        text = direct.open(urls[-1], timeout=30).read().decode()
    except (OSError, IndexError):
        return 0.0
    return float(re.findall(r"^garboard_fleet_decisions_total (\S+)", text, re.MULTILINE)[-1])


@pytest.mark.parametrize("count", [1000, pytest.param(5000, marks=pytest.mark.verify)])
def test_installed_clusters_cost_little_and_then_nothing(count: int, server: FleetServer, tmp_path: Path) -> None:
    log = tmp_path / "log"

    def started() -> ControllerProcess:
        more = ("--metrics-address", "127.0.0.1:0", "--leader-elect")
        return ControllerProcess(server.kubeconfig, tmp_path / "work", log, *more)

    server.write_clusters(count)
    controller = started()
    waits = wait_until(
        lambda: None if server.settled() == count else "not all are settled", timeout_s=600, pauses=Pauses.every(1.0)
    )
    assert waits is None
    assert controller.end() == 0
    first = server.requests()
    # One write for the status, one for finalizer and label; what else is asked is asked once for all of them.
    assert first.writes == 2 * count, first
    assert first.total() - first.of_leases - first.writes < 60, first

    log.write_text("")
    controller = started()
    waits = wait_until(
        lambda: None if decisions(log) >= count else "not all are looked at", timeout_s=120, pauses=Pauses.every(0.2)
    )
    assert waits is None
    renewed = server.requests()["update", "leases"]
    waits = wait_until(
        lambda: None if server.requests()["update", "leases"] >= renewed + 3 else "it does not renew its Lease",
        timeout_s=60, pauses=Pauses.every(0.5),
    )  # fmt: skip
    assert waits is None
    used = memory_mib(controller.process.pid)
    assert controller.end() == 0
    assert server.requests().writes == first.writes, "what is settled is left alone, also by one that has just begun"
    assert used <= MOST_MIB
