"""The asyncio client of the API server: the requests, errors and patience of the blocking one, and watches."""

import os
import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final, Self

import msgspec

from garboard.documents import Json
from garboard.errors import GarboardError
from garboard.kube import requests
from garboard.kube.access import Access
from garboard.kube.aio.api import Bookmark, Changed, ChangeType, ObjectList, ObjectSelection, WatchEvent, version_of
from garboard.kube.aio.clock import LOOP_CLOCK, AioClock, pause
from garboard.kube.aio.connections import MAX_BYTES, AioConnections, PendingAnswer
from garboard.kube.client import PATIENCE_S, TIMEOUT_S
from garboard.kube.errors import ObjectMissing, VersionExpired, broken, refusal
from garboard.kube.exchange import ApiAnswer
from garboard.kube.patience import Patience, Repetition
from garboard.kube.requests import PAGE_SIZE, ApiRequest, PatchFormat
from garboard.kube.resources import KnownResources, ObjectRef, Resource
from garboard.retry import Clock

FIELD_MANAGER: Final = "garboard"
# The server ends a watch after some time between these, so that watches move on to servers that came later.
_WATCH_S: Final = (300, 600)


def _silent(_line: str, /) -> None:
    return


class AioKubeClient:
    """Talks to one API server as one user, from one event loop; satisfies `KubeApi`, and is closed by `async with`.

    `find_access` is asked again now and then: tokens expire and certificates are renewed. `jitter` returns a number
    from 0 to 1, for how long watches may last. All tasks may share one client.
    """

    def __init__(
        self,
        find_access: Callable[[], Access],
        *,
        manager: str = FIELD_MANAGER,
        timeout_s: float = TIMEOUT_S,
        patience_s: float = PATIENCE_S,
        page_size: int = PAGE_SIZE,
        report: Callable[[str], None] = _silent,
        environment: Mapping[str, str] = os.environ,
        clock: AioClock = LOOP_CLOCK,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._manager = manager
        self._timeout_s = timeout_s
        self._page_size = page_size
        self._clock = clock
        self._jitter = jitter
        self._resources = KnownResources()
        self._patience = Patience(patience_s, report, Clock(now_s=clock.now_s))
        self._connections = AioConnections(find_access, timeout_s, environment, clock.now_s)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._connections.close()

    @property
    def server(self) -> str:
        return self._connections.access().server

    @property
    def connections_opened(self) -> int:
        """How many connections have been opened so far."""
        return self._connections.opened

    async def find(self, ref: ObjectRef) -> dict[str, Json] | None:
        """Return an object, or None where there is none."""
        try:
            return await self.require(ref)
        except ObjectMissing:
            return None

    async def require(self, ref: ObjectRef) -> dict[str, Json]:
        """Return an object; raise if there is none."""
        return await self.send(requests.get_object(await self.resource(ref.kind, ref.api_version), ref))

    async def create(self, ref: ObjectRef, content: Json, *, subresource: str = "") -> dict[str, Json]:
        """Create an object, or post to a subresource of it; raise if the object exists already."""
        resource = await self.resource(ref.kind, ref.api_version)
        request = requests.create_object(resource, ref, content, manager=self._manager, subresource=subresource)
        return await self.send(request)

    async def replace(self, ref: ObjectRef, content: Json, *, subresource: str = "") -> dict[str, Json]:
        """Replace an existing object; with a resourceVersion, only if it was not changed in between."""
        resource = await self.resource(ref.kind, ref.api_version)
        request = requests.replace_object(resource, ref, content, manager=self._manager, subresource=subresource)
        return await self.send(request)

    async def patch(
        self,
        ref: ObjectRef,
        content: Json,
        patch_format: PatchFormat = PatchFormat.MERGE,
        *,
        subresource: str = "",
        forces: bool = False,
    ) -> dict[str, Json]:
        """Patch an existing object, or apply one by server-side apply."""
        resource = await self.resource(ref.kind, ref.api_version)
        request = requests.patch_object(
            resource, ref, content, patch_format, manager=self._manager, subresource=subresource, forces=forces
        )
        return await self.send(request)

    async def delete(self, ref: ObjectRef, *, resource_version: str = "", uid: str = "", propagation: str = "") -> None:
        """Delete an object; it is no failure if there is none, and a conflict if it is not the one that is meant."""
        try:
            resource = await self.resource(ref.kind, ref.api_version)
            await self.send(
                requests.delete_object(
                    resource, ref, resource_version=resource_version, uid=uid, propagation=propagation
                )
            )
        except ObjectMissing:
            return

    async def list_objects(self, selection: ObjectSelection) -> ObjectList:
        """Return all objects of a selection as they are at one version, page after page."""
        resource = await self.resource(selection.kind, selection.api_version)
        first = requests.list_objects(
            resource,
            selection.namespace,
            labels=selection.labels,
            fields=selection.fields,
            page_size=self._page_size,
        )
        try:
            return await self._pages(first, resource)
        except VersionExpired:  # between two pages: the next list is one page, which is of one version by itself
            return await self._pages(requests.in_one_page(first), resource)

    @asynccontextmanager
    async def watch(self, selection: ObjectSelection, version: str) -> AsyncIterator[AsyncIterator[WatchEvent]]:
        """Tell what changes after a version, until the server ends the watch."""
        resource = await self.resource(selection.kind, selection.api_version)
        shortest, longest = _WATCH_S
        request = requests.watch_objects(
            resource,
            selection.namespace,
            labels=selection.labels,
            fields=selection.fields,
            version=version,
            timeout_s=int(shortest + (longest - shortest) * self._jitter()),
        )
        async with self._connections.answering(request) as answer:
            if answer.status != 200:
                request.read(answer.status, await answer.body(self._timeout_s), answer.retry_after_s)
            yield self._events(request, answer)

    async def resource(self, kind: str, api_version: str = "") -> Resource:
        """Return the resource of a kind; the API server is asked about kinds that are not in the table."""
        if api_version and self._resources.find(kind, api_version) is None:
            self._resources.learn(api_version, await self.send(requests.discover(api_version)))
        return self._resources.require(kind, api_version)

    async def send(self, request: ApiRequest) -> dict[str, Json]:
        """Send a request, repeat it while that is safe and allowed, and return the object in the answer."""
        steps = Repetition(request, self._patience).steps()
        answer: ApiAnswer | None = None
        error: GarboardError | None = None
        while True:
            try:
                step = steps.throw(error) if error is not None else steps.send(answer)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            answer = error = None
            if not isinstance(step, ApiRequest):
                await pause(self._clock, step)
                continue
            try:
                answer = await self._connections.exchange(step)
            except GarboardError as raised:
                error = raised

    async def _pages(self, first: ApiRequest, resource: Resource) -> ObjectList:
        items: list[dict[str, Json]] = []
        version = ""
        page: ApiRequest | None = first
        while page is not None:
            answer = await self.send(page)
            version = version or version_of(answer)
            items += (_typed(each, resource) for each in requests.listed(answer))
            page = requests.next_page(page, answer)
        return ObjectList(version, tuple(items))

    async def _events(self, request: ApiRequest, answer: PendingAnswer) -> AsyncIterator[WatchEvent]:
        """Yield the events of a watch; each is one line, which may arrive in any number of parts."""
        rest = b""
        while chunk := await answer.chunk(None):
            *lines, rest = (rest + chunk).split(b"\n") if rest else chunk.split(b"\n")
            for line in lines:
                if line.strip():
                    yield _event(request, line)
            if len(rest) > MAX_BYTES:
                raise broken(self.server, ConnectionError("an event without an end"))
        if rest.strip():
            raise broken(self.server, ConnectionError("the watch ended within an event"))


def _typed(item: dict[str, Json], resource: Resource) -> dict[str, Json]:
    """Return an item of a list with its kind, which the API server leaves out of those of built-in types."""
    if "kind" in item and "apiVersion" in item:
        return item
    return {"apiVersion": resource.api_version, "kind": resource.kind, **item}


def _event(request: ApiRequest, line: bytes) -> WatchEvent:
    """Return an event; one that is an error is raised."""
    try:
        document = msgspec.json.decode(line)
        name, content = document["type"], document["object"]
    except (msgspec.DecodeError, LookupError, TypeError):
        raise GarboardError(f"cannot {request.what}: an event that cannot be read", hint="it is begun again") from None
    if name == "BOOKMARK":
        return Bookmark(version_of(content))
    if name == "ERROR":
        code = content.get("code") if isinstance(content, dict) else None
        raise refusal(f"cannot {request.what}", code if isinstance(code, int) else 500, content)
    return Changed(ChangeType(name), content)
