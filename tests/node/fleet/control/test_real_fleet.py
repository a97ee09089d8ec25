"""Controllers on a real API server: inventories, claims, conditions that clear by themselves, two at once."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from garboard.errors import NotReady
from garboard.fleet.controllers import Stored
from garboard.fleet.controllers.cache import claim_of, own_customization, pool_of
from garboard.fleet.crds import OWNER_LABEL
from garboard.kube import Access, ObjectRef
from garboard.kube.aio import AioKubeClient, ObjectSelection
from garboard.lab.binaries import Binaries
from garboard.model import DEFAULT_VERSION
from garboard.node.fleet.control.controller import FleetController, refuse_other_controllers
from tests.support.fleet.controller_process import write_kubeconfig
from tests.support.fleet.real_fleet import CRD, Users, controller, install_kinds, job_controller, says, until
from tests.support.kube.real_server import real_api_server

pytestmark = pytest.mark.real
HIVE = "hive.openshift.io/v1"


@pytest.fixture(scope="module")
def access(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Access]:
    with real_api_server(binaries, str(DEFAULT_VERSION), tmp_path_factory.mktemp("server")) as running:
        install_kinds(running)
        yield running


@asynccontextmanager
async def running(users: Users, made: FleetController | None = None) -> AsyncIterator[None]:
    """Have a controller at work for a while; in the end it is cut off, in the middle of whatever it does."""
    work = asyncio.create_task((made or controller(users.api)).run())
    try:
        yield
    finally:
        work.cancel()
        with suppress(asyncio.CancelledError):
            await work


def scenario(access: Access, namespace: str, story: Callable[[Users], Awaitable[None]]) -> None:
    async def told() -> None:
        async with AioKubeClient(lambda: access) as api:
            users = Users(api, namespace)
            await users.begin()
            await story(users)

    asyncio.run(told())


async def clusters(users: Users, pool: str = "") -> list[Stored]:
    listed = await users.api.list_objects(ObjectSelection(kind="ClusterDeployment", api_version=HIVE))
    found = (Stored({"kind": "ClusterDeployment", **each}) for each in listed.items)
    return [each for each in found if pool_of(each) == (users.namespace, pool or pool_of(each)[1])]


def test_pool_is_filled_and_a_claim_takes_a_cluster_which_is_replaced(
    access: Access, binaries: Binaries, tmp_path: Path
) -> None:
    kubectl = (
        binaries.locate("kubectl", str(DEFAULT_VERSION)),
        "--kubeconfig",
        write_kubeconfig(access, tmp_path / "c"),
    )

    async def waited_for(resource: str, condition: str) -> None:
        words = ("-n", "story-claims", "wait", resource, "--for", f"condition={condition}", "--timeout=120s")
        ended = await asyncio.create_subprocess_exec(*kubectl, *words, stdout=asyncio.subprocess.DEVNULL)
        assert await ended.wait() == 0

    async def story(users: Users) -> None:
        await users.entry("c1", installConfigPatches=[{"op": "replace", "path": "/replicas", "valueJSON": "3"}])
        await users.entry("c2")
        await users.pool("edge", 1, inventory=["c1", "c2"])
        async with running(users):
            await until(lambda: ready(users, "edge", 1), "the pool is ready")
            (first,) = await clusters(users)
            entry = await users.find("ClusterDeploymentCustomization", "c1")
            assert own_customization(first) == "c1"
            assert says(entry, "Available", "False", "Reserved")
            assert says(entry, "ApplySucceeded", "True", "Succeeded")
            alice = {"kind": "User", "name": "alice", "apiGroup": "rbac.authorization.k8s.io"}
            await users.put("ClusterClaim", "mine", {"clusterPoolName": "edge", "subjects": [alice]})
            await waited_for("clusterclaim/mine", "ClusterRunning")
            await waited_for("clusterclaim/mine", "Pending=False")
            await waited_for("clusterpool/edge", "MissingDependencies=False")
            binding = await users.find("RoleBinding", "hive-claim-owner", first.namespace)
            assert binding is not None
            assert binding.entries("subjects")[0]["name"] == "alice"
            await until(lambda: used(users, 2), "the pool is full again, with the other entry")
            # Claims of the same second are served by name.
            await users.put("ClusterClaim", "first", {"clusterPoolName": "edge"})
            await users.put("ClusterClaim", "last", {"clusterPoolName": "edge"})
            await until(lambda: waits(users, "last", "every entry of the pool's inventory"), "the last one waits")
            await users.delete("ClusterClaim", "mine")
            await until(lambda: claimed(users, "last"), "what was given back is made anew for the next")
            assert first.name not in {each.name for each in await clusters(users)}

    scenario(access, "story-claims", story)


async def ready(users: Users, pool: str, count: int) -> bool:
    found = await users.find("ClusterPool", pool)
    return found is not None and found.number("status", "ready") == count


async def claimed(users: Users, name: str) -> bool:
    return says(await users.find("ClusterClaim", name), "Pending", "False", "ClusterClaimed")


async def waits(users: Users, name: str, why: str) -> bool:
    found = await users.find("ClusterClaim", name)
    return found is not None and why in str(found.entries("status", "conditions"))


def test_customization_that_comes_later_clears_the_conditions(access: Access) -> None:
    async def story(users: Users) -> None:
        await users.pool("edge", 1, customizationRef={"name": "shared"})
        await users.secret("config", {"install-config.yaml": "metadata: {name: alone}\n"})
        provisioning = {"installConfigSecretRef": {"name": "config"}, "customizationRef": {"name": "shared"}}
        spec = {"clusterName": "alone", "baseDomain": "x", "platform": {"none": {}}, "provisioning": provisioning}
        await users.put("ClusterDeployment", "alone", spec)
        async with running(users):
            await until(lambda: pool_says(users, "MissingDependencies", "True", "Missing"), "the pool misses it")
            await until(lambda: met(users, "False", "CustomizationRefNotAvailable"), "the deployment misses it")
            took = [await seconds_until_cleared(users)]
            while min(took) >= 2.0 and len(took) < 5:  # a busy machine may be slow, but not each time
                await users.delete("ClusterDeploymentCustomization", "shared")
                await until(
                    lambda: pool_says(users, "MissingDependencies", "True", "Missing"), "the pool misses it again"
                )
                took.append(await seconds_until_cleared(users))
            assert min(took) < 2.0
            await until(lambda: ready(users, "edge", 1), "and makes a cluster")

    scenario(access, "story-late", story)


async def seconds_until_cleared(users: Users) -> float:
    """Write the customization that is missed; return after how long nobody misses it any more."""
    began = asyncio.get_running_loop().time()
    await users.entry("shared")
    await until(lambda: pool_says(users, "MissingDependencies", "False", "Verified"), "the pool has it")
    await until(lambda: met(users, "True", "AllRequirementsMet"), "the deployment has it")
    return asyncio.get_running_loop().time() - began


async def pool_says(users: Users, type_: str, status: str, reason: str) -> bool:
    return says(await users.find("ClusterPool", "edge"), type_, status, reason)


async def met(users: Users, status: str, reason: str) -> bool:
    return says(await users.find("ClusterDeployment", "alone"), "RequirementsMet", status, reason)


def test_two_pools_never_share_an_entry_while_their_controllers_are_cut_off(access: Access) -> None:
    """Two controllers at once, each ended at random moments and begun anew, and clusters that keep going away."""

    async def story(users: Users) -> None:
        rng = random.Random(7)
        for name in ("c1", "c2", "c3"):
            await users.entry(name)
        await users.pool("left", 2, inventory=["c1", "c2", "c3"], maxSize=2)
        await users.pool("right", 2, inventory=["c2", "c3"], maxSize=2)
        for number in range(12):
            async with running(users), running(users):
                for _ in range(rng.randint(2, 25)):
                    await check(users)
                    await asyncio.sleep(0.03 * rng.random())
                if number % 3 == 2:
                    for each in (await clusters(users))[:1]:
                        await users.api.delete(ObjectRef("ClusterDeployment", each.namespace, each.name, HIVE))
        async with running(users):
            await until(lambda: used(users, 3), "all three are in use")
            await check(users)
            for name in ("left", "right"):
                await users.delete("ClusterPool", name)
            await until(lambda: gone(users), "the pools end")
        for name in ("c1", "c2", "c3"):
            entry = await users.find("ClusterDeploymentCustomization", name)
            assert entry is not None
            assert entry.finalizers == ()
            assert says(entry, "Available", "True", "Available")

    scenario(access, "story-shared", story)


async def check(users: Users) -> None:
    found = await clusters(users)
    entries = [own_customization(each) for each in found]
    assert len(entries) == len(set(entries)), f"an entry is used twice: {entries}"
    for name in ("left", "right"):
        assert sum(1 for each in found if pool_of(each)[1] == name) <= 2
    assert [each for each in found if claim_of(each)] == []


async def used(users: Users, count: int) -> bool:
    found = [each for each in await clusters(users) if each.at("spec", "installed") is True and not each.is_deleting]
    return len({own_customization(each) for each in found}) == count


async def gone(users: Users) -> bool:
    return not await clusters(users) and all(
        [await users.find("ClusterPool", each) is None for each in ("left", "right")]
    )


def test_attempts_are_jobs_whose_failure_is_that_of_the_attempt(access: Access) -> None:
    async def story(users: Users) -> None:
        await users.pool("edge", 1, installAttemptsLimit=1)
        async with running(users, job_controller(users.api, "garboard:test")):
            await until(lambda: jobs(users), "a Job is made")
            (job,) = await jobs(users)
            where, container = job.namespace, job.entries("spec", "template", "spec", "containers")[0]
            assert container["image"] == "garboard:test"
            assert job.number("spec", "backoffLimit") == 0
            provision = str(job.entries("metadata", "ownerReferences")[0]["name"])
            assert provision in container["args"]  # type: ignore[operator]
            await until(lambda: created(users, provision, where), "the provision knows its Job")
            held = await users.find("Secret", f"{provision}-documents", where)
            assert held is not None
            now = "2026-01-01T00:00:00Z"
            said = [
                {"type": each, "status": "True", "reason": "DeadlineExceeded", "message": "", "lastTransitionTime": now}
                for each in ("FailureTarget", "Failed")
            ]
            status: Any = {"status": {"conditions": said, "startTime": now}}
            await users.api.patch(ObjectRef("Job", where, job.name), status, subresource="status")
            await until(lambda: stopped(users, where), "the deployment gives up after its only attempt")
            failed = await users.find("ClusterProvision", provision, where)
            assert failed is None or says(failed, "ClusterProvisionFailed", "True", "AttemptDeadlineExceeded")

    scenario(access, "story-jobs", story)


async def jobs(users: Users) -> list[Stored]:
    listed = await users.api.list_objects(ObjectSelection(kind="Job"))
    return [Stored(each) for each in listed.items]


async def created(users: Users, provision: str, where: str) -> bool:
    found = await users.find("ClusterProvision", provision, where)
    return says(found, "ClusterProvisionJobCreated", "True", "JobCreated")


async def stopped(users: Users, where: str) -> bool:
    found = await users.find("ClusterDeployment", where, where)
    return found is None or found.is_deleting or says(found, "ProvisionStopped", "True", "InstallAttemptsLimitReached")


def test_controller_refuses_to_run_beside_a_real_hive(access: Access) -> None:
    async def story(users: Users) -> None:
        await refuse_other_controllers(users.api)
        ref = ObjectRef("CustomResourceDefinition", "", "clusterdeployments.hive.openshift.io", CRD)
        label: Any = {"metadata": {"labels": {OWNER_LABEL: None}}}
        await users.api.patch(ref, label)
        with pytest.raises(NotReady, match="Hive's own"):
            await refuse_other_controllers(users.api)
        label["metadata"]["labels"][OWNER_LABEL] = "garboard"
        await users.api.patch(ref, label)

    scenario(access, "story-other", story)
