"""Many installed ClusterDeployments on a real API server, and what one user of it has asked of it since."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from garboard.documents import write_yaml
from garboard.fleet.controllers import Stored
from garboard.fleet.controllers.conditions import is_status
from garboard.fleet.crds import custom_resource_definitions
from garboard.kube import Access, KubeClient, ObjectRef
from garboard.kube.aio import AioKubeClient, ObjectSelection
from garboard.lab.binaries import Binaries
from garboard.retry import Pauses, wait_until
from tools.harness.api_server import real_api_server

HIVE: Final = "hive.openshift.io/v1"
USER: Final = "controller-of-many"
_CRD: Final = "apiextensions.k8s.io/v1"
_WRITES: Final = ("create", "update", "patch", "delete", "deletecollection")
_NAMESPACE: Final = "many"
_POLICY: Final = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Metadata
  users: [%s]
- level: None
"""


def install_kinds(access: Access) -> None:
    """Put Hive's kinds into an API server, and wait until it serves them."""
    with KubeClient(access) as client:
        for each in custom_resource_definitions():
            client.create(ObjectRef("CustomResourceDefinition", "", Stored(each).name, _CRD), each)

        def unserved() -> str | None:
            found = map(Stored, client.list_objects("CustomResourceDefinition", api_version=_CRD))
            is_ready = all(is_status(each, "Established", "True") for each in found)
            return None if is_ready else "some kinds are not served yet"

        assert wait_until(unserved, timeout_s=60, pauses=Pauses.every(0.2)) is None


class Requests(Counter[tuple[str, str]]):
    """How often a user did what: by the verb and the resource, with its subresource."""

    def since(self, before: "Requests") -> "Requests":
        return Requests(self - before)

    @property
    def writes(self) -> int:
        """How many of them were writes, but for those of a Lease."""
        return sum(count for (verb, what), count in self.items() if verb in _WRITES and what != "leases")

    @property
    def of_leases(self) -> int:
        return sum(count for (_, what), count in self.items() if what == "leases")


class FleetServer:
    """An API server with Hive's kinds, on which one user is looked at."""

    def __init__(self, access: Access, folder: Path) -> None:
        self.access, self._audit = access, folder / "audit.log"
        self.kubeconfig = folder / "controller.conf"
        named: Any = {
            "clusters": [{"name": "c", "cluster": {"server": access.server, "insecure-skip-tls-verify": True}}],
            "users": [{"name": "u", "user": {"token": USER}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        }
        self.kubeconfig.write_text(write_yaml({"apiVersion": "v1", "kind": "Config", "current-context": "x", **named}))

    def requests(self) -> Requests:
        """Return everything that the user has asked so far; watches count when they end."""
        found = Requests()
        for line in self._audit.read_text().splitlines() if self._audit.exists() else ():
            event = json.loads(line)
            what = event.get("objectRef", {})
            parts = (what.get("resource", event["requestURI"].partition("?")[0]), what.get("subresource", ""))
            found[event["verb"], "/".join(filter(None, parts))] += 1
        return found

    def last_write_at(self) -> datetime:
        """Return when the user has written last, but for Leases."""
        events = map(json.loads, self._audit.read_text().splitlines())
        return max(
            datetime.fromisoformat(each["stageTimestamp"])
            for each in events
            if each["verb"] in _WRITES and each["objectRef"]["resource"] != "leases"
        )

    def write_clusters(self, count: int) -> None:
        """Write installed clusters that no controller has seen."""
        asyncio.run(_write_clusters(self.access, count))

    def settled(self) -> int:
        """Return how many clusters a controller has taken on: with its finalizer, and a condition that says so."""
        with KubeClient(self.access) as client:
            found = map(Stored, client.list_objects("ClusterDeployment", _NAMESPACE, api_version=HIVE))
            return sum(1 for each in found if each.finalizers and is_status(each, "Provisioned", "True"))


async def _write_clusters(access: Access, count: int) -> None:
    made: Any = {"infraID": "i", "clusterID": "c", "adminKubeconfigSecretRef": {"name": "k"}}
    spec: Any = {"baseDomain": "x", "platform": {"none": {}}, "installed": True, "clusterMetadata": made}
    some = asyncio.Semaphore(20)
    async with AioKubeClient(lambda: access) as api:
        await api.create(ObjectRef("Namespace", "", _NAMESPACE, "v1"), {"metadata": {"name": _NAMESPACE}})

        async def one(name: str) -> None:
            metadata = {"name": name, "namespace": _NAMESPACE}
            content: Any = {"metadata": metadata, "spec": {**spec, "clusterName": name}}
            content |= {"apiVersion": HIVE, "kind": "ClusterDeployment"}
            async with some:
                await api.create(ObjectRef("ClusterDeployment", _NAMESPACE, name, HIVE), content)

        await asyncio.gather(*(one(f"c{number}") for number in range(count)))
        listed = await api.list_objects(ObjectSelection(kind="ClusterDeployment", api_version=HIVE))
        assert len(listed.items) == count


@contextmanager
def fleet_server(binaries: Binaries, version: str, folder: Path) -> Iterator[FleetServer]:
    """Run an API server that writes down what `USER` asks, an administrator like any controller."""
    policy = folder / "audit-policy.yaml"
    policy.write_text(_POLICY % USER)
    flags = (f"--audit-policy-file={policy}", f"--audit-log-path={folder / 'audit.log'}", "--audit-log-maxsize=2000")
    with real_api_server(binaries, version, folder, users={USER: "system:masters"}, flags=flags) as access:
        install_kinds(access)
        yield FleetServer(access, folder)


def memory_mib(pid: int) -> float:
    """Return the most memory that a process has held so far."""
    (line,) = (each for each in Path(f"/proc/{pid}/status").read_text().splitlines() if each.startswith("VmHWM"))
    return int(line.split()[1]) / 1024
