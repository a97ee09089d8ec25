"""Keeping a store as the API server has it: a list, then a watch that resumes, and a new list where it cannot.

The rules: what breaks is resumed from the last version that was told; a version that has expired, and any other
refusal but "too many requests", is followed by a new list, which is compared with the store, so that deletions in the
gap are told too. In between it waits, longer each time, until the server has answered well again.
"""

import http.client
import random
from collections.abc import Callable
from typing import NoReturn

from garboard.documents import Json
from garboard.errors import GarboardError
from garboard.kube.aio.api import Bookmark, Changed, ChangeType, KubeApi, ObjectSelection, WatchEvent, version_of
from garboard.kube.aio.clock import LOOP_CLOCK, AioClock, pause
from garboard.kube.aio.store import Delta, ObjectStore, key_of
from garboard.kube.aio.synced import Synced
from garboard.kube.errors import RequestRefused, ServerBusy, VersionExpired
from garboard.retry import Pauses

PAUSES = Pauses(first_s=0.8, longest_s=30.0, growth=2.0)
# A watch that ends sooner and has told nothing is a failure of some kind, as in client-go.
SHORT_WATCH_S = 1.0


def without_managed_fields(content: dict[str, Json]) -> dict[str, Json]:
    """Return an object without the notes of who set which field, which are often larger than the rest of it."""
    metadata = content.get("metadata")
    if not isinstance(metadata, dict) or "managedFields" not in metadata:
        return content
    kept = {name: value for name, value in metadata.items() if name != "managedFields"}
    return {**content, "metadata": kept}


def _ignored(_delta: Delta, /) -> None:
    return


def _silent(_selection: ObjectSelection, _error: GarboardError, _pause_s: float, /) -> None:
    return


class Reflector:
    """One selection and its store. `on_delta` hears every change once the store has it; it must not block.

    `keep` is what is stored of an object; `jitter` returns a number from 0 to 1 for each pause, so that the clients of
    a server that comes back do not all come at once; `report` hears of failures and of the pause after each.
    """

    def __init__(
        self,
        api: KubeApi,
        selection: ObjectSelection,
        store: ObjectStore,
        *,
        on_delta: Callable[[Delta], None] = _ignored,
        keep: Callable[[dict[str, Json]], dict[str, Json]] = without_managed_fields,
        clock: AioClock = LOOP_CLOCK,
        jitter: Callable[[], float] = random.random,
        pauses: Pauses = PAUSES,
        report: Callable[[ObjectSelection, GarboardError, float], None] = _silent,
    ) -> None:
        self.selection = selection
        self.store = store
        self.synced = Synced()
        self.lists, self.watches, self.failures = 0, 0, 0
        self.trouble: GarboardError | None = None  # what went wrong, until the server has answered well again
        self._api = api
        self._on_delta = on_delta
        self._keep = keep
        self._clock = clock
        self._jitter = jitter
        self._pauses = pauses
        self._pause_s = pauses.first_s
        self._report = report
        self._has_expired = False
        self._version = ""

    @property
    def version(self) -> str:
        """The version up to which the store has been told everything; empty before the first list and after a gap."""
        return self._version

    async def run(self) -> NoReturn:
        """Keep the store until cancelled."""
        while True:
            failure = await self._attempt()
            if failure is None:
                continue
            self.failures += 1
            self.trouble = failure
            pause_s = self._next_pause_s(failure)
            self._report(self.selection, failure, pause_s)
            await pause(self._clock, pause_s)

    async def _attempt(self) -> GarboardError | None:
        """List unless a watch can go on, then watch until that ends; return what went wrong, if anything did."""
        try:
            if not self._version:
                await self._list()
            return await self._watch()
        except GarboardError as error:
            if isinstance(error, RequestRefused) and error.http_status != http.client.TOO_MANY_REQUESTS:
                self._version = ""
            return error

    async def _list(self) -> None:
        self.lists += 1
        found = await self._api.list_objects(self.selection)
        for delta in self.store.swap(map(self._keep, found.items)):
            self._on_delta(delta)
        self._version = found.version
        self.trouble = None
        self.synced.set()

    async def _watch(self) -> GarboardError | None:
        began_at, told = self._clock.now_s(), 0
        self.watches += 1
        async with self._api.watch(self.selection, self._version) as events:
            self.trouble = None
            async for event in events:
                self._take(event)
                told += 1
                self._does_well()
        if told or self._clock.now_s() - began_at >= SHORT_WATCH_S:
            self._does_well()
            return None
        return GarboardError(f"the API server ended the watch of {self.selection} at once", hint="it is begun again")

    def _take(self, event: WatchEvent) -> None:
        match event:
            case Bookmark(version):
                self._version = version
            case Changed(change, content):
                is_gone = change is ChangeType.DELETED
                delta = self.store.drop(key_of(content)) if is_gone else self.store.put(self._keep(content))
                self._version = version_of(content) or self._version
                if delta is not None:
                    self._on_delta(delta)

    def _does_well(self) -> None:
        self._pause_s, self._has_expired, self.trouble = self._pauses.first_s, False, None

    def _next_pause_s(self, failure: GarboardError) -> float:
        asked_s = failure.retry_after_s if isinstance(failure, ServerBusy) else None
        if isinstance(failure, VersionExpired) and not self._has_expired:
            self._has_expired = True  # which says nothing about the server; if it happens again, that does
            return 0.0
        pause_s, self._pause_s = self._pause_s, self._pauses.after(self._pause_s)
        return max(asked_s or 0.0, pause_s) * (1 + self._jitter())
