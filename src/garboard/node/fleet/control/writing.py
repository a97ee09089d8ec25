"""Carries out what controllers have decided: each write is of the version that was looked at, and known at once."""

from collections.abc import Iterable
from typing import Protocol

from garboard.fleet.controllers import (
    Action,
    Create,
    Delete,
    ObjectCache,
    ObjectId,
    Replace,
    ReplaceStatus,
    RunProvision,
    StopProvision,
    Stored,
)
from garboard.fleet.controllers.deciding import WATCHED_KINDS, FreshList, fresh_lists
from garboard.kube import ObjectExists, ObjectMissing, ObjectRef
from garboard.kube.aio import KubeApi, ObjectSelection
from garboard.values import Json


class ProvisionRuns(Protocol):
    """What makes and destroys clusters beside the controller."""

    def start(self, attempt: Stored) -> None:
        """See to it that an attempt is under way."""

    def stop(self, attempt: ObjectId) -> None:
        """See to it that nothing runs any more for an attempt."""


class FleetWriter:
    """Carries out actions in their order; the first one that fails ends it, and is decided again later."""

    def __init__(self, api: KubeApi, cache: ObjectCache, runs: ProvisionRuns) -> None:
        self._api, self._cache, self._runs = api, cache, runs

    async def carry_out(self, actions: Iterable[Action]) -> None:
        versions: dict[tuple[ObjectId, str], str] = {}  # what a version has become by a write of this very decision
        for each in actions:
            await self.carry_out_one(each, versions)

    async def carry_out_one(self, action: Action, versions: dict[tuple[ObjectId, str], str]) -> None:
        match action:
            case Create(new):
                await self._create(new)
            case Replace(new):
                await self._replace(new, "", versions)
            case ReplaceStatus(new):
                await self._replace(new, "status", versions)
            case Delete(old):
                version = versions.get((old.id, old.version), old.version)
                propagation = "Background" if old.kind == "Job" else ""
                await self._api.delete(ref_of(old.id), resource_version=version, uid=old.uid, propagation=propagation)
            case RunProvision(of):
                self._runs.start(of)
            case StopProvision(attempt):
                self._runs.stop(attempt)

    async def _create(self, new: Stored) -> None:
        try:
            self._know(await self._api.create(ref_of(new.id), dict(new.tree)))
        except ObjectExists:
            found = await self._api.find(ref_of(new.id))
            if found is not None:
                self._know(found)

    async def _replace(self, new: Stored, subresource: str, versions: dict[tuple[ObjectId, str], str]) -> None:
        before = new.version
        version = versions.get((new.id, before), before)
        content = new.edited(version, "metadata", "resourceVersion").tree
        try:
            made = await self._api.replace(ref_of(new.id), dict(content), subresource=subresource)
        except ObjectMissing:
            self._cache.end(new.id, new.uid)
            raise
        versions[new.id, before] = self._know(made).version

    def _know(self, content: dict[str, Json]) -> Stored:
        stored = Stored(content)
        if not (stored.is_deleting and not stored.finalizers):  # else it is gone with this write
            self._cache.put(stored)
        return stored


class FreshReader:
    """Reads anew what a decision depends on, and puts it into the cache."""

    def __init__(self, api: KubeApi, cache: ObjectCache) -> None:
        self._api, self._cache = api, cache

    async def read(self, key: ObjectId) -> None:
        found = await self._api.find(ref_of(key))
        if found is None:
            self._cache.remove(key)
            return
        self._cache.put(Stored(found))
        for each in fresh_lists(key):
            await self._list(each)

    async def _list(self, wanted: FreshList) -> None:
        selection = ObjectSelection(
            kind=wanted.kind,
            api_version=WATCHED_KINDS[wanted.kind],
            namespace=wanted.namespace,
            labels=wanted.labels,
        )
        listed = await self._api.list_objects(selection)
        api_version, kind = WATCHED_KINDS[wanted.kind], wanted.kind
        objects = (Stored({"apiVersion": api_version, "kind": kind, **each}) for each in listed.items)
        self._cache.refresh(wanted.kind, wanted.index, wanted.value, objects, int(listed.version or 0))


def ref_of(key: ObjectId) -> ObjectRef:
    return ObjectRef(key.kind, key.namespace, key.name, WATCHED_KINDS.get(key.kind, "v1"))
