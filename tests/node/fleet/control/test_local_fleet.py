"""`fleet controller` with processes that drive an installer, on a real API server: killed, and begun again."""

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from garboard.fleet.controllers import Stored
from garboard.kube import Access, ObjectRef
from garboard.kube.aio import AioKubeClient, ObjectSelection
from garboard.lab.binaries import Binaries
from garboard.model import DEFAULT_VERSION
from garboard.node.fleet.control.controller import Shard
from tests.support.fleet.controller_process import ControllerProcess, garboard, write_kubeconfig
from tests.support.fleet.provisions import PROGRAM
from tests.support.fleet.real_fleet import Users, install_kinds, says, until
from tests.support.fleet.synthetic_installer import PASSWORD
from tests.support.kube.real_server import real_api_server

pytestmark = pytest.mark.real
HIVE = "hive.openshift.io/v1"
MACHINES = "openshift/99_worker-machineset-0.yaml"


@pytest.fixture(scope="module")
def access(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Access]:
    with real_api_server(binaries, str(DEFAULT_VERSION), tmp_path_factory.mktemp("server")) as running:
        install_kinds(running)
        yield running


def replicas(op: str, count: int) -> Any:
    return {"op": op, "path": "/spec/replicas", "valueJSON": str(count)}


def customization(*patches: Any) -> Any:
    return {"installerManifestPatches": [{"manifestSelector": {"glob": MACHINES}, "patches": list(patches)}]}


class LocalFleet:
    """A pool whose installer makes files in a folder, which stands for a cloud."""

    def __init__(self, access: Access, folder: Path, namespace: str) -> None:
        self.access, self.folder, self.namespace = access, folder, namespace
        self.cloud, self.work = folder / "cloud", folder / "work"
        self.cloud.mkdir()
        self.kubeconfig = write_kubeconfig(access, folder / "kubeconfig")
        self.rng = random.Random(11)

    def controller(self, *more: str) -> ControllerProcess:
        named = ("--namespace", self.namespace, "--installer", str(PROGRAM))
        return ControllerProcess(self.kubeconfig, self.work, self.folder / "controller.log", *named, *more)

    def installer_env(self, misbehave: str = "") -> Any:
        values = {"CLOUD": str(self.cloud), "MISBEHAVE": misbehave, "CLOUD_TOKEN": "cloud-key-of-this-test"}
        return [{"name": name, "value": value} for name, value in values.items()]

    def machines(self) -> list[Path]:
        return [each for each in self.cloud.iterdir() if each.name != "calls"]


async def ready(users: Users, count: int) -> bool:
    found = await users.find("ClusterPool", "edge")
    return found is not None and found.number("status", "ready") == count


async def while_controllers_are_killed(fleet: LocalFleet, probe: Any, what: str) -> None:
    """Wait for something while every controller is killed after a while, and another one begun."""
    for _ in range(4):
        controller = fleet.controller()
        await asyncio.sleep(fleet.rng.uniform(1.0, 4.0))
        controller.kill()
    controller = fleet.controller()
    try:
        await until(probe, what)
    finally:
        controller.kill()


def test_pool_makes_patched_clusters_although_its_controller_is_killed(access: Access, tmp_path: Path) -> None:
    async def story() -> None:
        async with AioKubeClient(lambda: access) as api:
            users, fleet = Users(api, "local-pool"), LocalFleet(access, tmp_path, "local-pool")
            await users.begin()
            # The entry's patch fails unless that of all clusters was applied before it.
            await users.put("ClusterDeploymentCustomization", "everywhere", customization(replicas("replace", 5)))
            patches = customization(replicas("test", 5), replicas("replace", 7))
            await users.put("ClusterDeploymentCustomization", "c1", patches)
            env = fleet.installer_env("slow:create-cluster")
            await users.pool("edge", 1, inventory=["c1"], customizationRef={"name": "everywhere"}, installerEnv=env)
            await while_controllers_are_killed(fleet, lambda: ready(users, 1), "the pool is ready")
            machines = fleet.machines()
            assert len(machines) == 3
            assert "replicas: 7" in machines[0].read_text().replace("\\n", "\n")

            controller = fleet.controller()
            claim = garboard(fleet.kubeconfig, "fleet", "claim", "edge", "-n", users.namespace, "--name", "mine")
            assert claim.stdout == "mine\n"
            words = ("fleet", "kubeconfig", "mine", "-n", users.namespace, "--timeout", "120s")
            assert "kind: Config" in garboard(fleet.kubeconfig, *words).stdout
            shown = garboard(fleet.kubeconfig, "fleet", "status", "-n", users.namespace).stdout
            assert "local-pool/mine" in shown
            assert "ClusterClaimed" in shown
            infra = machines[0].name.rpartition("-")[0]
            await users.delete("ClusterClaim", "mine")
            controller.kill()
            await while_controllers_are_killed(fleet, lambda: replaced(fleet, users, infra), "another cluster is made")
            said = (tmp_path / "controller.log").read_text()
            assert PASSWORD not in said
            assert "cloud-key-of-this-test" not in said

    asyncio.run(story())


async def replaced(fleet: LocalFleet, users: Users, infra: str) -> bool:
    is_gone = not any(each.name.startswith(infra) for each in fleet.machines())
    return is_gone and len(fleet.machines()) == 3 and await ready(users, 1)


def test_failed_attempt_says_why_and_keeps_its_log(access: Access, tmp_path: Path) -> None:
    async def story() -> None:
        async with AioKubeClient(lambda: access) as api:
            users, fleet = Users(api, "local-failed"), LocalFleet(access, tmp_path, "local-failed")
            await users.begin()
            await users.put("ClusterDeploymentCustomization", "c1", customization(replicas("test", 99)))
            await users.pool("edge", 1, inventory=["c1"], installerEnv=fleet.installer_env())
            controller = fleet.controller()
            try:
                await until(lambda: broken(users, "c1"), "the entry is broken by its patches")
            finally:
                assert controller.end() == 0
            assert fleet.machines() == []
            listed = await api.list_objects(ObjectSelection(kind="Event", api_version="v1"))
            reasons = {str(each.get("reason")) for each in listed.items}
            assert "ManifestPatchFailed" in reasons

    asyncio.run(story())


async def broken(users: Users, name: str) -> bool:
    entry = await users.find("ClusterDeploymentCustomization", name)
    return says(entry, "ApplySucceeded", "False", "BrokenBySyntax")


def test_another_controller_goes_on_when_the_leader_is_killed(access: Access, tmp_path: Path) -> None:
    async def story() -> None:
        async with AioKubeClient(lambda: access) as api:
            users, fleet = Users(api, "local-leader"), LocalFleet(access, tmp_path, "local-leader")
            await users.begin()
            both = [fleet.controller("--leader-elect"), fleet.controller("--leader-elect")]
            try:
                ref = ObjectRef("Lease", "kube-system", "garboard-fleet", "coordination.k8s.io/v1")
                await until(lambda: holder(api, ref), "one of them leads")
                first = await holder(api, ref)
                log = (tmp_path / "controller.log").read_text()
                assert log.count("leader.elected") == 1
                await users.pool("edge", 1, installerEnv=fleet.installer_env())
                await until(lambda: ready(users, 1), "the leader serves the pool")
                # Which of the two it is, nobody outside needs to know: both are killed in turn, the other one stays.
                both[0].kill()
                await api.patch(ObjectRef("ClusterPool", users.namespace, "edge", HIVE), {"spec": {"size": 2}})
                await until(lambda: ready(users, 2), "the one that is left serves it")
                both[0] = fleet.controller("--leader-elect")
                both[1].kill()
                await api.patch(ObjectRef("ClusterPool", users.namespace, "edge", HIVE), {"spec": {"size": 3}})
                await until(lambda: ready(users, 3), "the new one serves it")
                assert await holder(api, ref) != first
            finally:
                for each in both:
                    each.kill()

    asyncio.run(story())


def test_shards_divide_the_namespaces_and_each_has_its_own_leader(access: Access, tmp_path: Path) -> None:
    async def story() -> None:
        async with AioKubeClient(lambda: access) as api:
            fleet = LocalFleet(access, tmp_path, "")
            both = [fleet.controller("--leader-elect", "--shard", f"{number}/2") for number in range(2)]
            try:
                users = [Users(api, f"shard-of-{name}") for name in ("berlin", "bonn", "celle", "mainz")]
                assert {Shard(0, 2).has(each.namespace) for each in users} == {True, False}
                for each in users:
                    await each.begin()
                    await each.pool("edge", 1, installerEnv=fleet.installer_env())
                for each in users:
                    await until(lambda each=each: ready(each, 1), f"{each.namespace} is served")  # type: ignore[misc]
                leases = [f"garboard-fleet-{number}-of-2" for number in range(2)]
                refs = [ObjectRef("Lease", "kube-system", each, "coordination.k8s.io/v1") for each in leases]
                before = [await holder(api, each) for each in refs]
                assert len({*before}) == 2
                both[1].kill()
                both[1] = fleet.controller("--leader-elect", "--shard", "1/2")
                for each in users:
                    await api.patch(ObjectRef("ClusterPool", each.namespace, "edge", HIVE), {"spec": {"size": 2}})
                for each in users:
                    await until(lambda each=each: ready(each, 2), f"{each.namespace} is served again")  # type: ignore[misc]
                after = [await holder(api, each) for each in refs]
                assert [after[0] == before[0], after[1] == before[1]] == [True, False]
            finally:
                for process in both:
                    process.kill()

    asyncio.run(story())


async def holder(api: AioKubeClient, ref: ObjectRef) -> str:
    found = await api.find(ref)
    return Stored(found).text("spec", "holderIdentity") if found is not None else ""
