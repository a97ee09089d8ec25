"""A fleet on a real API server: its kinds, users who write objects, and attempts that succeed at once."""

import asyncio
import base64
from collections.abc import Awaitable, Callable
from typing import Any

from garboard.fleet.controllers import WATCHED_KINDS, ObjectId, Stored
from garboard.fleet.controllers.attempt import RunState
from garboard.fleet.controllers.conditions import condition
from garboard.kube import ObjectRef
from garboard.kube.aio import KubeApi
from garboard.node.fleet.control.controller import FleetController
from garboard.node.fleet.control.jobs import JobTemplate
from garboard.node.fleet.control.local_runs import NoRuns
from tools.harness.fleet_load import install_kinds as install_kinds

CRD = "apiextensions.k8s.io/v1"
CONFIG = "apiVersion: v1\nmetadata: {name: x}\nbaseDomain: x\nplatform: {none: {}}\nreplicas: 1\n"


class InstantRuns:
    """Attempts that come to their end as soon as they may; while `holds` they wait."""

    def __init__(self, api: KubeApi, ended: Callable[[ObjectId, float], None]) -> None:
        self._api, self._ended = api, ended
        self._tasks: dict[ObjectId, asyncio.Task[None]] = {}
        self.holds = False

    def state(self, attempt: ObjectId) -> RunState:
        return "running" if attempt in self._tasks else "absent"

    def start(self, attempt: Stored) -> None:
        if attempt.id not in self._tasks and not self.holds:
            self._tasks[attempt.id] = asyncio.create_task(self._run(attempt.id))

    def stop(self, attempt: ObjectId) -> None:
        if attempt in self._tasks:
            self._tasks[attempt].cancel()

    async def watch(self) -> None:
        return

    async def _run(self, key: ObjectId) -> None:
        ref = ObjectRef(key.kind, key.namespace, key.name, WATCHED_KINDS[key.kind])
        try:
            if key.kind == "ClusterDeprovision":
                await self._api.patch(ref, {"status": {"completed": True}}, subresource="status")
                return
            spec: Any = {
                "infraID": f"{key.name}-infra", "clusterID": "id",
                "adminKubeconfigSecretRef": {"name": f"{key.name}-admin-kubeconfig"},
            }  # fmt: skip
            await self._api.patch(ref, {"spec": spec})
            while Stored(await self._api.require(ref)).text("spec", "stage") == "initializing":
                await asyncio.sleep(0.05)
            await self._api.patch(ref, {"spec": {"stage": "complete"}})
        finally:
            del self._tasks[key]
            self._ended(key, 0.0)


class Users:
    """What people write, and what they wait for."""

    def __init__(self, api: KubeApi, namespace: str) -> None:
        self.api, self.namespace = api, namespace

    async def begin(self) -> None:
        await self.api.create(ObjectRef("Namespace", "", self.namespace, "v1"), {"metadata": {"name": self.namespace}})
        await self.secret("template", {"install-config.yaml": CONFIG})
        await self.put("ClusterImageSet", f"img-{self.namespace}", {"releaseImage": "r:1"}, namespace="")

    async def put(self, kind: str, name: str, spec: Any, *, namespace: str | None = None) -> None:
        where = self.namespace if namespace is None else namespace
        metadata = {"name": name, **({"namespace": where} if where else {})}
        content = {"apiVersion": WATCHED_KINDS[kind], "kind": kind, "metadata": metadata, "spec": spec}
        await self.api.create(ObjectRef(kind, where, name, WATCHED_KINDS[kind]), content)

    async def secret(self, name: str, texts: dict[str, str]) -> None:
        data: Any = {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}
        content: Any = {"metadata": {"name": name, "namespace": self.namespace}, "data": data}
        await self.api.create(ObjectRef("Secret", self.namespace, name, "v1"), content)

    async def pool(self, name: str, size: int, *, inventory: list[str] | None = None, **spec: Any) -> None:
        base: dict[str, Any] = {
            "platform": {"none": {}}, "baseDomain": "example.com", "size": size,
            "imageSetRef": {"name": f"img-{self.namespace}"}, "installConfigSecretTemplateRef": {"name": "template"},
        }  # fmt: skip
        listed = {"inventory": [{"name": each} for each in inventory]} if inventory is not None else {}
        await self.put("ClusterPool", name, {**base, **listed, **spec})

    async def entry(self, name: str, **spec: Any) -> None:
        await self.put("ClusterDeploymentCustomization", name, spec)

    async def find(self, kind: str, name: str, namespace: str | None = None) -> Stored | None:
        where = self.namespace if namespace is None else namespace
        found = await self.api.find(ObjectRef(kind, where, name, WATCHED_KINDS[kind]))
        return Stored(found) if found is not None else None

    async def delete(self, kind: str, name: str) -> None:
        await self.api.delete(ObjectRef(kind, self.namespace, name, WATCHED_KINDS[kind]))


async def until(
    probe: Callable[[], Awaitable[object]], what: str, *, every_s: float = 0.02, within_s: float = 120.0
) -> None:
    """Wait until something holds."""
    try:
        async with asyncio.timeout(within_s):
            while not await probe():
                await asyncio.sleep(every_s)
    except TimeoutError:
        raise AssertionError(f"it does not happen: {what}") from None


def says(stored: Stored | None, type_: str, status: str, reason: str = "") -> bool:
    said = condition(stored, type_) if stored is not None else None
    return said is not None and said.status == status and reason in ("", said.reason)


def controller(api: KubeApi, runs: list[InstantRuns] | None = None) -> FleetController:
    def instant(ended: Callable[[ObjectId, float], None]) -> Any:
        made = InstantRuns(api, ended)
        if runs is not None:
            runs.append(made)
        return made

    return FleetController(api, runs=instant)


def job_controller(api: KubeApi, image: str) -> FleetController:
    return FleetController(api, runs=lambda _ended: NoRuns(), make_jobs=JobTemplate(image))
