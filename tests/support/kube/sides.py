"""The two sides that the contract of `KubeApi` is held to: the fake of the tests, and a real API server."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

from garboard.kube import Access, KubeClient, ObjectMissing, ObjectRef
from garboard.kube.aio import AioKubeClient, KubeApi
from garboard.kube.resources import Resource
from garboard.retry import Pauses, wait_until
from tests.support.kube.fake_cluster import FakeCluster

GADGETS = "contract.example/v1"
GADGET = Resource("Gadget", GADGETS, "gadgets")
_CRD = "apiextensions.k8s.io/v1"
_numbers = count()


@dataclass(frozen=True)
class Server:
    """One side; without `access` it is the fake."""

    access: Access | None

    @asynccontextmanager
    async def connected(self) -> AsyncIterator["Connected"]:
        """Give a way to the server, and a namespace that nobody else uses."""
        namespace = f"contract-{next(_numbers)}"
        if self.access is None:
            fake = FakeCluster(resources=(GADGET,))
            fake.put("Namespace", {"metadata": {"name": namespace}}, api_version="v1")
            yield Connected(fake, namespace, fake)
            return
        access = self.access
        async with AioKubeClient(lambda: access, page_size=2) as client:
            await client.create(ObjectRef("Namespace", "", namespace, "v1"), {"metadata": {"name": namespace}})
            yield Connected(client, namespace, None)


@dataclass(frozen=True)
class Connected:
    api: KubeApi
    namespace: str
    fake: FakeCluster | None

    def ref(self, name: str) -> ObjectRef:
        return ObjectRef("Gadget", self.namespace, name, GADGETS)

    def gadget(self, name: str, *, spec: Any = None, **metadata: Any) -> dict[str, Any]:
        named = {"name": name, "namespace": self.namespace, **metadata}
        return {
            "apiVersion": GADGETS,
            "kind": "Gadget",
            "metadata": named,
            "spec": {"size": 1} if spec is None else spec,
        }

    async def create(self, name: str, **fields: Any) -> Any:
        return await self.api.create(self.ref(name), self.gadget(name, **fields))

    def forget(self) -> None:
        """Have old versions expire; those of the real server have, if they are old enough."""
        if self.fake is not None:
            self.fake.forget_history()


def run(server: Server, scenario: Callable[[Connected], Awaitable[None]]) -> None:
    async def within() -> None:
        async with server.connected() as connected, asyncio.timeout(120):
            await scenario(connected)

    asyncio.run(within())


def install_gadgets(access: Access) -> None:
    """Define the kind that the contract is about."""
    open_fields = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": open_fields, "status": open_fields}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema, "subresources": {"status": {}}}
    names = {"plural": "gadgets", "singular": "gadget", "kind": "Gadget"}
    spec = {"group": "contract.example", "scope": "Namespaced", "names": names, "versions": [version]}
    ref = ObjectRef("CustomResourceDefinition", "", "gadgets.contract.example", _CRD)
    with KubeClient(access) as client:
        client.create(ref, {"apiVersion": _CRD, "kind": ref.kind, "metadata": {"name": ref.name}, "spec": spec})  # type: ignore[dict-item]
        assert wait_until(lambda: _unserved(client), timeout_s=60, pauses=Pauses.every(0.1)) is None


def _unserved(client: KubeClient) -> str | None:
    try:
        client.list_objects("Gadget", api_version=GADGETS)
    except ObjectMissing as error:
        return error.message
    return None
