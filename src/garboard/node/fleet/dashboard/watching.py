"""The objects of a fleet as the API server has them, and the pages that are made of them."""

import asyncio
import hashlib
from contextlib import suppress
from functools import partial
from typing import Final, NoReturn

from garboard.errors import NotReady
from garboard.fleet.controllers.marks import API_VERSION
from garboard.fleet.controllers.stored import Stored
from garboard.fleet.dashboard import (
    SHOWN_KINDS,
    DashboardObjects,
    DashboardQuery,
    Overview,
    fragment,
    overview_of,
    shown_of,
)
from garboard.kube import ObjectMissing
from garboard.kube.aio import LOOP_CLOCK, Delta, KubeApi, ObjectSelection, ObjectStore, Reflector, all_synced
from garboard.values import dataclass

# A fleet that is made anew changes a hundred times a second: nobody needs that many pages.
SHORTEST_S: Final = 0.5
_REST: Final = 5.0  # so many times as long as a page takes to make, none is made
_MOST_KEPT: Final = 16


@dataclass(frozen=True, slots=True)
class Fragment:
    """A part of a page, and the tag by which it is known: another one has another tag."""

    overview: Overview
    html: str
    tag: str
    moves: int  # how many changes it has seen
    good_until_s: float


class FleetWatch:
    """Follows the kinds that are shown: of one namespace with the clusters of its pools, or of all."""

    def __init__(self, api: KubeApi, namespace: str = "") -> None:
        self.namespace = namespace
        self._api = api
        self._moves = 0
        self._moved = asyncio.Event()  # each change has an event of its own
        self._fragments: dict[DashboardQuery, Fragment] = {}  # made last comes last
        self._reflectors = {kind: self._reflector(kind) for kind in SHOWN_KINDS}

    async def check(self) -> None:
        """Raise if the fleet cannot be read at all."""
        try:
            await self._api.list_objects(self._reflectors["ClusterPool"].selection)
        except ObjectMissing as error:
            raise NotReady(
                "the API server has no ClusterPools", hint="garboard fleet install", error_class="no-fleet-kinds"
            ) from error

    async def run(self) -> NoReturn:
        """Follow the objects until cancelled."""
        async with asyncio.TaskGroup() as group:
            for each in self._reflectors.values():
                group.create_task(each.run())
        raise AssertionError("reflectors do not end")

    @property
    def is_synced(self) -> bool:
        return all(each.synced.is_set for each in self._reflectors.values())

    async def wait_until_synced(self, within_s: float) -> None:
        """Wait until everything has been listed once, or the time is over."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await all_synced(each.synced for each in self._reflectors.values())

    def log_of(self, kind: str, namespace: str, name: str) -> Stored | None:
        """Return an attempt, if it is one that can be seen."""
        if kind not in ("ClusterProvision", "ClusterDeprovision"):
            return None
        found = self._reflectors[kind].store.find(namespace, name)
        return Stored(found) if found is not None else None

    def fragment(self, shown: DashboardQuery) -> Fragment:
        """Return what a viewer sees, as it was half a second ago at most; of a large fleet, a little longer ago."""
        held = self._fragments.pop(shown, None)
        if held is None or LOOP_CLOCK.now_s() >= held.good_until_s:
            held = self._made(shown, held)
        while len(self._fragments) >= _MOST_KEPT:
            del self._fragments[next(iter(self._fragments))]
        self._fragments[shown] = held
        return held

    def _made(self, shown: DashboardQuery, held: Fragment | None) -> Fragment:
        began_s, troubles = LOOP_CLOCK.now_s(), self._troubles()
        if held is not None and held.moves == self._moves and held.overview.troubles == troubles:
            return held
        overview = overview_of(self._objects(), shown, troubles)
        html = fragment(overview)
        tag = hashlib.sha256(html.encode()).hexdigest()[:16]
        ended_s = LOOP_CLOCK.now_s()
        return Fragment(overview, html, tag, self._moves, ended_s + max(SHORTEST_S, _REST * (ended_s - began_s)))

    async def next_fragment(self, shown: DashboardQuery, seen: str, within_s: float) -> Fragment | None:
        """Return what a viewer sees as soon as it is not what was seen; None if it still is when the time is over."""
        try:
            async with asyncio.timeout(within_s):
                while (found := self.fragment(shown)).tag == seen:
                    if found.moves == self._moves:
                        await self._moved.wait()
                    await asyncio.sleep(SHORTEST_S)
        except TimeoutError:
            found = self.fragment(shown)  # troubles come and go without an object that changes
        return found if found.tag != seen else None

    def _reflector(self, kind: str) -> Reflector:
        is_of_namespace = kind in ("ClusterPool", "ClusterClaim")
        selection = ObjectSelection(
            kind=kind, api_version=API_VERSION, namespace=self.namespace if is_of_namespace else ""
        )
        keep = partial(shown_of, kind)
        return Reflector(self._api, selection, ObjectStore(), on_delta=self._on_delta, keep=keep)

    def _on_delta(self, _delta: Delta) -> None:
        self._moves += 1
        self._moved.set()
        self._moved = asyncio.Event()

    def _objects(self) -> DashboardObjects:
        return DashboardObjects(*(tuple(map(Stored, each.store.all())) for each in self._reflectors.values()))

    def _troubles(self) -> tuple[str, ...]:
        """Return why what is known may be out of date, each reason once."""
        if not self.is_synced and not any(each.trouble for each in self._reflectors.values()):
            return ("The objects are being listed for the first time.",)
        found = (each.trouble.message for each in self._reflectors.values() if each.trouble is not None)
        return tuple(dict.fromkeys(found))
