"""What a controller costs with a thousand installed clusters: requests, memory, and nothing once it has settled."""

import asyncio
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from garboard.fleet.controllers import Stored
from garboard.fleet.controllers.conditions import is_status
from garboard.kube import Access, KubeClient, ObjectRef
from garboard.kube.aio import AioKubeClient, ObjectSelection
from garboard.lab.binaries import Binaries
from garboard.model import DEFAULT_VERSION
from tests.support.fleet.controller_process import ControllerProcess, write_kubeconfig
from tests.support.fleet.real_fleet import Users, install_kinds, until
from tests.support.kube.real_server import real_api_server

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]
HIVE = "hive.openshift.io/v1"
METRICS = "http://127.0.0.1:"
WRITES = ("POST", "PUT", "PATCH", "DELETE")
MOST_MIB = 300


@pytest.fixture
def access(binaries: Binaries, tmp_path: Path) -> Iterator[Access]:
    with real_api_server(binaries, str(DEFAULT_VERSION), tmp_path) as running:
        install_kinds(running)
        yield running


async def write_clusters(users: Users, count: int) -> None:
    metadata = {"infraID": "i", "clusterID": "c", "adminKubeconfigSecretRef": {"name": "k"}}
    spec = {"baseDomain": "x", "platform": {"none": {}}, "installed": True, "clusterMetadata": metadata}
    some = asyncio.Semaphore(20)

    async def one(number: int) -> None:
        async with some:
            await users.put("ClusterDeployment", f"c{number}", {**spec, "clusterName": f"c{number}"})

    await asyncio.gather(*(one(number) for number in range(count)))


async def are_settled(users: Users, count: int) -> bool:
    listed = await users.api.list_objects(ObjectSelection(kind="ClusterDeployment", api_version=HIVE))
    found = map(Stored, listed.items)
    return sum(1 for each in found if each.finalizers and is_status(each, "Provisioned", "True")) == count


def requests_for_hive(access: Access) -> dict[str, float]:
    """Return how often the API server was asked about Hive's objects so far, by the verb."""
    with KubeClient(access) as client:
        _, text, _ = client.get_text("/metrics")
    found: dict[str, float] = {}
    for line in text.splitlines():
        if line.startswith("apiserver_request_total{") and 'group="hive.openshift.io"' in line:
            verb = re.search(r'verb="(\w+)"', line)
            if verb is not None:
                found[verb[1]] = found.get(verb[1], 0.0) + float(line.rpartition(" ")[2])
    return found


def written(before: dict[str, float], after: dict[str, float]) -> float:
    return sum(after.get(verb, 0.0) - before.get(verb, 0.0) for verb in WRITES)


def memory_mib(pid: int) -> float:
    (line,) = (each for each in Path(f"/proc/{pid}/status").read_text().splitlines() if each.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def decisions(log: Path) -> float:
    """Return how many decisions the controller that began last has made."""
    url = re.findall(r"metrics: (\S+)", log.read_text())[-1]
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    text = direct.open(url, timeout=30).read().decode()
    return float(re.findall(r"^garboard_fleet_decisions_total (\S+)", text, re.MULTILINE)[-1])


@pytest.mark.parametrize("count", [1000, pytest.param(5000, marks=pytest.mark.verify)])
def test_installed_clusters_cost_little_and_then_nothing(count: int, access: Access, tmp_path: Path) -> None:
    async def story() -> None:
        kubeconfig, log = write_kubeconfig(access, tmp_path / "kubeconfig"), tmp_path / "log"

        def started() -> ControllerProcess:
            return ControllerProcess(kubeconfig, tmp_path / "work", log, "--metrics-address", "127.0.0.1:0")

        async with AioKubeClient(lambda: access) as api:
            users = Users(api, "many")
            await api.create(ObjectRef("Namespace", "", "many", "v1"), {"metadata": {"name": "many"}})
            await write_clusters(users, count)
            clock = asyncio.get_running_loop().time
            before, began = requests_for_hive(access), clock()
            controller = started()
            await until(lambda: are_settled(users, count), "all are settled", every_s=1.0, within_s=600.0)
            first = requests_for_hive(access)
            first_s, per_object = clock() - began, written(before, first) / count
            controller.kill()

            log.write_text("")
            began = clock()
            controller = started()

            async def has_looked_at_all() -> bool:
                try:
                    return decisions(log) >= count
                except (OSError, IndexError):
                    return False

            await until(has_looked_at_all, "all have been looked at again", every_s=0.2)
            again_s, again = clock() - began, requests_for_hive(access)
            used = memory_mib(controller.process.pid)
            assert controller.end() == 0
            said: Any = f"{count}: {first_s:.0f} s, {per_object:.2f} writes each; again {again_s:.1f} s, {used:.0f} MiB"
            print(said)
            # One write for the status, one for finalizer and label.
            assert per_object <= 2.05
            assert written(first, again) == 0, "what is settled is left alone, also by a controller that has just begun"
            assert used <= MOST_MIB

    asyncio.run(story())
