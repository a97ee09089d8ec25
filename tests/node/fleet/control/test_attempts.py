"""Attempts with work folders of their own, as in the pods of Jobs: nothing that one of them has made is lost."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from garboard.fleet.controllers import Stored
from garboard.fleet.installers.contract import InstallerFailed
from garboard.kube import Access, KubeClient, ObjectRef
from garboard.kube.aio import AioKubeClient, ObjectSelection
from garboard.lab.binaries import Binaries
from garboard.model import DEFAULT_VERSION
from garboard.node.fleet.attempts import AttemptOfController
from garboard.node.fleet.control.controller import FleetController
from garboard.node.fleet.control.local_runs import NoRuns
from tests.support.fleet.provisions import PROGRAM
from tests.support.fleet.real_fleet import Users, install_kinds, says, until
from tests.support.kube.real_server import real_api_server
from tests.support.node.reporters import MemoryReporter

pytestmark = pytest.mark.real
HIVE = "hive.openshift.io/v1"
WHERE = "attempts"


@pytest.fixture(scope="module")
def access(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Access]:
    with real_api_server(binaries, str(DEFAULT_VERSION), tmp_path_factory.mktemp("server")) as running:
        install_kinds(running)
        yield running


def attempt(access: Access, name: str, work: Path, *, destroys: bool = False) -> None:
    """Carry out an attempt, as its Job would."""
    with KubeClient(access) as client:
        each = AttemptOfController(
            client=client, namespace=WHERE, name=name, work=work, installer=str(PROGRAM), reporter=MemoryReporter()
        )
        each.destroy() if destroys else each.provision()


def env(cloud: Path, misbehave: str = "") -> Any:
    return [{"name": "CLOUD", "value": str(cloud)}, {"name": "MISBEHAVE", "value": misbehave}]


async def provisions(users: Users, stage: str) -> list[Stored]:
    listed = await users.api.list_objects(ObjectSelection(kind="ClusterProvision", api_version=HIVE))
    return [each for each in map(Stored, listed.items) if each.text("spec", "stage") == stage]


async def has_seen(controller: FleetController, changed: Any) -> bool:
    seen = controller.cache.get("ClusterDeployment", WHERE, "alone")
    wanted = changed["spec"]["provisioning"]["installerEnv"]
    return seen is not None and list(seen.entries("spec", "provisioning", "installerEnv")) == wanted


async def deployment(users: Users) -> Stored | None:
    return await users.find("ClusterDeployment", "alone")


def machines(cloud: Path) -> list[str]:
    return sorted(each.name for each in cloud.iterdir() if each.name != "calls")


def test_next_attempt_destroys_what_the_last_one_left_and_the_end_what_is_there(access: Access, tmp_path: Path) -> None:
    cloud = tmp_path / "cloud"
    cloud.mkdir()
    late = timedelta(0)

    async def story(users: Users, controller: FleetController) -> None:
        nonlocal late
        provisioning = {
            "installConfigSecretRef": {"name": "template"}, "installerEnv": env(cloud, "half:create-cluster"),
        }  # fmt: skip
        spec = {"clusterName": "x", "baseDomain": "x", "platform": {"none": {}}, "provisioning": provisioning}
        await users.put("ClusterDeployment", "alone", spec)
        await until(lambda: provisions(users, "initializing"), "an attempt begins")
        (first,) = await provisions(users, "initializing")
        await until(lambda: users.find("Secret", f"{first.name}-documents"), "it has its documents")
        with pytest.raises(InstallerFailed):
            await asyncio.to_thread(attempt, access, first.name, tmp_path / "first")
        assert len(machines(cloud)) == 2
        (failed,) = await provisions(users, "failed")
        assert says(failed, "ClusterProvisionFailed", "True", "InstallerFailed")
        assert "create cluster" in failed.text("spec", "installLog")
        ref = ObjectRef("ClusterDeployment", WHERE, "alone", HIVE)
        changed: Any = {"spec": {"provisioning": {"installerEnv": env(cloud)}}}
        await users.api.patch(ref, changed)
        # A pass over what it had cached would begin another attempt with the variables that fail.
        await until(lambda: has_seen(controller, changed), "the controller has seen other variables")
        late = timedelta(minutes=5)
        await users.api.patch(ref, {"metadata": {"annotations": {"looked-at": "again"}}})
        await until(lambda: provisions(users, "initializing"), "another attempt begins")
        (second,) = await provisions(users, "initializing")
        assert second.text("spec", "prevInfraID") == failed.text("spec", "infraID")
        await until(lambda: users.find("Secret", f"{second.name}-documents"), "it has its documents")
        await asyncio.to_thread(attempt, access, second.name, tmp_path / "second")
        await until(lambda: is_installed(users), "the cluster is installed")
        found = await deployment(users)
        assert found is not None
        infra = found.text("spec", "clusterMetadata", "infraID")
        assert infra != failed.text("spec", "infraID")
        assert machines(cloud) == [f"{infra}-{number}" for number in range(3)]
        await users.delete("ClusterDeployment", "alone")
        await until(lambda: users.find("ClusterDeprovision", "alone"), "it is to be destroyed")
        await asyncio.to_thread(attempt, access, "alone", tmp_path / "third", destroys=True)
        assert machines(cloud) == []
        await until(lambda: is_gone(users), "the deployment is gone")

    async def with_controller() -> None:
        async with AioKubeClient(lambda: access) as api:
            users = Users(api, WHERE)
            await users.begin()
            controller = FleetController(api, runs=lambda _ended: NoRuns(), now=lambda: datetime.now(UTC) + late)
            work = asyncio.create_task(controller.run())
            try:
                await story(users, controller)
            finally:
                work.cancel()
                with suppress(asyncio.CancelledError):
                    await work

    asyncio.run(with_controller())


async def is_installed(users: Users) -> bool:
    found = await deployment(users)
    return found is not None and found.at("spec", "installed") is True


async def is_gone(users: Users) -> bool:
    return await deployment(users) is None
