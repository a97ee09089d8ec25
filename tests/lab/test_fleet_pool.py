"""A pool of two real clusters: made on bare hosts by the controller, claimed, used, given back, and made anew."""

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
from tests.support.fleet.real_fleet import Users, install_kinds, says
from tests.support.kube.real_server import real_api_server
from tests.support.lab.clusters import Bare
from tools.harness.lab import LabUnderTest

pytestmark = [pytest.mark.lab, pytest.mark.timeout(1200)]
HIVE = "hive.openshift.io/v1"
ASK = ("kubectl", "--kubeconfig", "/root/claim.conf", "get", "nodes", "--request-timeout=30s")
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


async def installed(users: Users) -> dict[str, Stored]:
    """Return the installed clusters by their inventory entry."""
    listed = await users.api.list_objects(ObjectSelection(kind="ClusterDeployment", api_version=HIVE))
    found = [stored(each) for each in listed.items]
    return {own_customization(each): each for each in found if each.at("spec", "installed") is True}


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
    """Write a pool of two, with two hosts, of which either is enough for a cluster."""
    users = Users(api, "racks")
    await api.create(ObjectRef("Namespace", "", "racks", "v1"), {"metadata": {"name": "racks"}})
    await users.secret("template", {"install-config.yaml": write_yaml(install_config(lab, 2, 0))})
    await users.put("ClusterImageSet", "img-racks", {"releaseImage": "none"}, namespace="")
    everywhere = {"installerManifestPatches": [{**LOGS, "patches": [patch("add", "/containerLogMaxFiles", 5)]}]}
    await users.put("ClusterDeploymentCustomization", "everywhere", everywhere)
    for number in (1, 2):
        await users.put("ClusterDeploymentCustomization", f"host{number}", host(number))
    await users.pool("edge", 2, inventory=["host1", "host2"], customizationRef={"name": "everywhere"})
    return users


class KilledControllers:
    """One controller after the other, each killed after some seconds, wherever it is then."""

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        self._kubeconfig, self._folder, self._random = kubeconfig, folder, random.Random(5)
        self.killed = 0

    async def until(self, probe: Callable[[], Awaitable[bool]], what: str) -> None:
        """Wait until something holds, with never a controller that lives for longer than a quarter of a minute."""
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + 600
        while not await probe():
            assert loop.time() < give_up_at, f"it does not happen: {what}"
            controller = ControllerProcess(self._kubeconfig, self._folder / "work", self._folder / "log")
            killed_at = loop.time() + self._random.uniform(3, 15)
            while loop.time() < killed_at and not await probe():
                await asyncio.sleep(0.5)
            controller.kill()
            self.killed += 1


def test_pool_of_two_hands_out_clusters_of_real_hosts_and_fills_up_again(
    bare: Bare, binaries: Binaries, tmp_path: Path
) -> None:
    lab = bare(control_planes=2)

    async def story(access: Access) -> None:
        kubeconfig = write_kubeconfig(access, tmp_path / "kubeconfig")
        controllers = KilledControllers(kubeconfig, tmp_path)
        async with AioKubeClient(lambda: access) as api:
            users = await prepared(api, lab)

            async def both_are_there() -> bool:
                return set(await installed(users)) == {"host1", "host2"}

            await controllers.until(both_are_there, "both hosts are clusters")
            before = await installed(users)
            garboard(kubeconfig, "fleet", "claim", "edge", "-n", "racks", "--name", "mine")

            async def one_is_claimed() -> bool:
                said = await users.find("ClusterClaim", "mine")
                return says(said, "Pending", "False", "ClusterClaimed") and says(said, "ClusterRunning", "True")

            await controllers.until(one_is_claimed, "the claim has one of them")
            (entry,) = (name for name, each in (await installed(users)).items() if claim_of(each) == "mine")
            (other,) = {"host1", "host2"} - {entry}
            node = entry.replace("host", "cp")
            given = garboard(kubeconfig, "fleet", "kubeconfig", "mine", "-n", "racks").stdout
            assert kubelet_settings(lab, node, given) == (70 + int(node[-1]), 7)
            await users.delete("ClusterClaim", "mine")

            async def it_was_made_anew() -> bool:
                found = (await installed(users)).get(entry)
                return found is not None and found.name != before[entry].name and not found.is_deleting

            await controllers.until(it_was_made_anew, "what was given back is a new cluster")
            refused = lab.exec(node, *ASK, check=False)
            assert refused.returncode != 0, "the credentials that were handed out are of no use any more"
            assert (await installed(users))[other].name == before[other].name, "nobody touched the other one"
            await users.delete("ClusterPool", "edge")

            async def all_is_gone() -> bool:
                return await users.find("ClusterPool", "edge") is None

            await controllers.until(all_is_gone, "the pool ends")
            assert is_bare(lab, "cp1")
            assert is_bare(lab, "cp2")
            assert controllers.killed >= 4

    with real_api_server(binaries, str(DEFAULT_VERSION), tmp_path) as access:
        install_kinds(access)
        asyncio.run(story(access))
