"""A pool of real clusters: made on bare hosts by the controller, claimed, used, given back, and made anew elsewhere."""

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from garboard.documents import write_yaml
from garboard.fleet.controllers import Stored
from garboard.fleet.controllers.cache import claim_of, own_customization
from garboard.kube import Access, ObjectRef
from garboard.kube.aio import AioKubeClient, ObjectSelection
from garboard.lab.binaries import Binaries
from garboard.model import DEFAULT_VERSION
from tests.support.fleet.controller_process import ControllerProcess, garboard, write_kubeconfig
from tests.support.fleet.lab_fleet import install_config, patch
from tests.support.fleet.real_fleet import Users, install_kinds
from tests.support.kube.real_server import real_api_server
from tests.support.lab.clusters import Bare
from tools.harness.lab import LabUnderTest

pytestmark = [pytest.mark.lab, pytest.mark.timeout(1200)]
HIVE = "hive.openshift.io/v1"
LOGS: Any = {"manifestSelector": {"glob": "hosts/*/patches/kubeletconfiguration.yaml"}}


def host(number: int) -> Any:
    """Return an entry that reserves one host, and is applied after what is for all clusters."""
    address = f"10.89.0.{10 + number}"
    reserved: Any = [{"name": f"cp{number}", "address": address, "role": "control-plane"}]
    install = [
        patch("add", "/hosts", reserved),
        patch("replace", "/kubeadm/0/controlPlaneEndpoint", f"{address}:6443"),
        patch("add", "/kubeadm/3/maxPods", 70 + number),
    ]
    files = [patch("test", "/containerLogMaxFiles", 5), patch("replace", "/containerLogMaxFiles", 7)]
    return {"installConfigPatches": install, "installerManifestPatches": [{**LOGS, "patches": files}]}


async def until(probe: Callable[[], Awaitable[object]], what: str) -> None:
    try:
        async with asyncio.timeout(600):
            while not await probe():
                await asyncio.sleep(0.5)
    except TimeoutError:
        raise AssertionError(f"it does not happen: {what}") from None


async def installed(users: Users) -> dict[str, str]:
    """Return the claims of installed clusters by their inventory entry."""
    listed = await users.api.list_objects(ObjectSelection(kind="ClusterDeployment", api_version=HIVE))
    found = [stored(each) for each in listed.items]
    return {own_customization(each): claim_of(each) for each in found if each.at("spec", "installed") is True}


def stored(content: Any) -> Stored:
    return Stored({"kind": "ClusterDeployment", **content})


def kubelet_settings(lab: LabUnderTest, node: str, kubeconfig: str) -> tuple[int, int]:
    """Ask the kubelet of a node what it runs with, by a kubeconfig that a user was given."""
    lab.exec(node, "sh", "-c", f"cat > /root/claim.conf <<'EOF'\n{kubeconfig}EOF\n")
    raw = f"/api/v1/nodes/{node}/proxy/configz"
    said = lab.exec(node, "kubectl", "--kubeconfig", "/root/claim.conf", "get", "--raw", raw).stdout
    config = json.loads(said)["kubeletconfig"]
    return int(config["maxPods"]), int(config["containerLogMaxFiles"])


def is_bare(lab: LabUnderTest, node: str) -> bool:
    found = lab.exec(
        node, "sh", "-c", "find /etc/kubernetes /var/lib/etcd -type f; systemctl is-active kubelet", check=False
    )
    return found.stdout == "inactive\n"


async def prepared(api: AioKubeClient, lab: LabUnderTest) -> Users:
    """Write a pool of one, with two hosts, of which either is enough for a cluster."""
    users = Users(api, "racks")
    await api.create(ObjectRef("Namespace", "", "racks", "v1"), {"metadata": {"name": "racks"}})
    await users.secret("template", {"install-config.yaml": write_yaml(install_config(lab, 2, 0))})
    await users.put("ClusterImageSet", "img-racks", {"releaseImage": "none"}, namespace="")
    everywhere = {"installerManifestPatches": [{**LOGS, "patches": [patch("add", "/containerLogMaxFiles", 5)]}]}
    await users.put("ClusterDeploymentCustomization", "everywhere", everywhere)
    for number in (1, 2):
        await users.put("ClusterDeploymentCustomization", f"host{number}", host(number))
    await users.pool("edge", 1, inventory=["host1", "host2"], customizationRef={"name": "everywhere"})
    return users


def test_pool_hands_out_a_cluster_of_real_hosts_and_fills_up_again(
    bare: Bare, binaries: Binaries, tmp_path: Path
) -> None:
    lab, rng = bare(control_planes=2), random.Random(5)

    async def story(access: Access) -> None:
        kubeconfig = write_kubeconfig(access, tmp_path / "kubeconfig")

        async def killed_until(probe: Callable[[], Awaitable[object]], what: str) -> None:
            for _ in range(3):
                controller = ControllerProcess(kubeconfig, tmp_path / "work", tmp_path / "log")
                await asyncio.sleep(rng.uniform(2, 8))
                controller.kill()
            controller = ControllerProcess(kubeconfig, tmp_path / "work", tmp_path / "log")
            try:
                await until(probe, what)
            finally:
                controller.kill()

        async with AioKubeClient(lambda: access) as api:
            users = await prepared(api, lab)

            async def first_is_there() -> bool:
                return await installed(users) == {"host1": ""}

            await killed_until(first_is_there, "the first host is a cluster")
            garboard(kubeconfig, "fleet", "claim", "edge", "-n", "racks", "--name", "mine")

            async def both_are_there() -> bool:
                return await installed(users) == {"host1": "mine", "host2": ""}

            await killed_until(both_are_there, "the claim has the first, and the pool is full again")
            given = garboard(kubeconfig, "fleet", "kubeconfig", "mine", "-n", "racks").stdout
            assert kubelet_settings(lab, "cp1", given) == (71, 7)
            await users.delete("ClusterClaim", "mine")

            async def only_the_second_is_left() -> bool:
                return await installed(users) == {"host2": ""} and is_bare(lab, "cp1")

            await killed_until(only_the_second_is_left, "what was given back is a bare host")
            assert not is_bare(lab, "cp2")

    with real_api_server(binaries, str(DEFAULT_VERSION), tmp_path) as access:
        install_kinds(access)
        asyncio.run(story(access))
