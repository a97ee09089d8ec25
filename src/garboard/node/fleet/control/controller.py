"""The controller of a fleet: watches, a queue of keys, decisions and their writes; one leader for each shard."""

import asyncio
import logging
import random
import zlib
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

from garboard.documents import Json
from garboard.errors import NotReady
from garboard.fleet.controllers import KEYED_KINDS, WATCHED_KINDS, ObjectCache, ObjectId, Reconciled, Stored, keys_for
from garboard.fleet.controllers.attempt import MakeJobs, RunState
from garboard.fleet.controllers.marks import POOL_NAMESPACE, SECRET_TYPE
from garboard.fleet.deploy import refuse_foreign_definitions
from garboard.kube import ObjectRef
from garboard.kube.aio import Delta, KubeApi, ObjectSelection, ObjectStore, Reflector, WorkQueue, run_workers
from garboard.node.fleet.control.announcing import Announcer
from garboard.node.fleet.control.local_runs import LocalRuns, NoRuns
from garboard.node.fleet.control.pool_metrics import pool_metrics
from garboard.node.fleet.control.writing import FleetWriter, FreshReader
from garboard.tunnel.metrics import Metrics
from garboard.values import dataclass

log = logging.getLogger("garboard.fleet")

# They wait for the API server most of the time. Hive has five for each of its controllers; here all kinds share them.
_WORKERS = 20
_NAME_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_CRD, _CRDS = "apiextensions.k8s.io/v1", "clusterdeployments.hive.openshift.io"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
# Secrets of these types are none that a fleet names.
_UNREAD_SECRETS = ("kubernetes.io/service-account-token", "helm.sh/release.v1", "bootstrap.kubernetes.io/token")


@dataclass(frozen=True, slots=True)
class Shard:
    """A part of the namespaces: those whose hash leaves this number."""

    number: int = 0
    of: int = 1

    def has(self, namespace: str) -> bool:
        return zlib.crc32(namespace.encode()) % self.of == self.number


async def refuse_other_controllers(api: KubeApi) -> None:
    """Refuse to run where the kinds are missing, or are a real Hive's, whose own controllers are at work."""
    found = await api.find(ObjectRef("CustomResourceDefinition", "", _CRDS, _CRD))
    if found is None:
        raise NotReady(
            "the API server has no ClusterDeployments", hint="garboard fleet install", error_class="no-fleet-kinds"
        )
    refuse_foreign_definitions([found])


class FleetController:
    """Keeps what the API server tells in a cache, and decides about each key that a change concerns."""

    def __init__(
        self,
        api: KubeApi,
        *,
        runs: Callable[[Callable[[ObjectId, float], None]], LocalRuns | NoRuns],
        make_jobs: MakeJobs | None = None,
        namespace: str = "",
        shard: Shard | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        letters: random.Random | None = None,
    ) -> None:
        self.cache = ObjectCache()
        self.queue: WorkQueue[ObjectId] = WorkQueue()
        self.is_synced = False
        self.decisions, self.failures = 0, 0
        self._api, self._namespace, self._shard, self._now = api, namespace, shard or Shard(), now
        self._letters = letters or random.SystemRandom()
        self._runs = runs(self._run_ended)
        self.writer = FleetWriter(api, self.cache, self._runs)
        self._reader = FreshReader(api, self.cache)
        self._announcer = Announcer(api, now)
        self._reconciled = Reconciled(
            cache=self.cache, fresh_names=self._fresh_names, make_jobs=make_jobs, run_state=self._run_state
        )
        self._reflectors = [self._reflector(kind, version) for kind, version in WATCHED_KINDS.items()]

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            for each in self._reflectors:
                group.create_task(each.run())
            for each in self._reflectors:
                await each.synced.wait()
            self.is_synced = True
            log.info("controller.synced objects=%d", sum(len(each.store) for each in self._reflectors))
            for kind in KEYED_KINDS:
                for stored in self.cache.all(kind):
                    self._enqueue(stored.id)
            group.create_task(self._runs.watch())
            await run_workers(self.queue, _WORKERS, self._work, report=self._failed)

    def _reflector(self, kind: str, api_version: str) -> Reflector:
        return Reflector(
            self._api,
            ObjectSelection(kind=kind, api_version=api_version),
            ObjectStore(),
            on_delta=partial(self._on_delta, kind),
            keep=partial(kept, kind, api_version),
        )

    def _on_delta(self, kind: str, delta: Delta) -> None:
        if delta.after is not None:
            stored = Stored(delta.after)
            self.cache.put(stored)
        else:
            stored = Stored(delta.before or {})
            self.cache.end(stored.id, stored.uid)
        if self.is_synced:
            for key in keys_for(stored, self.cache):
                self._enqueue(key)

    def pool_metrics(self) -> Metrics:
        """Return what the pools that we serve consist of now."""
        return pool_metrics(self.cache, lambda pool: self._serves(pool.namespace))

    def _enqueue(self, key: ObjectId) -> None:
        if self._serves(key.namespace or key.name):
            self.queue.add(key)

    def _serves(self, where: str) -> bool:
        return self._shard.has(where) and (not self._namespace or self._is_of_namespace(where))

    def _is_of_namespace(self, where: str) -> bool:
        """Say whether a namespace is the one that we serve, or that of a cluster which a pool there has made."""
        if where == self._namespace:
            return True
        found = self.cache.get("Namespace", "", where)
        return found is not None and found.label(POOL_NAMESPACE) == self._namespace

    def _run_state(self, key: ObjectId) -> RunState:
        return self._runs.state(key)

    def _run_ended(self, key: ObjectId, after_s: float) -> None:
        self.queue.add_after(key, after_s)

    def _fresh_names(self) -> list[str]:
        return ["".join(self._letters.choices(_NAME_LETTERS, k=5)) for _ in range(10)]

    async def _work(self, key: ObjectId) -> float | None:
        decision = self._reconciled.decide(key, self._now())
        if decision.needs_fresh:
            await self._reader.read(key)
            decision = self._reconciled.decide(key, self._now())
        self.decisions += 1
        await self.writer.carry_out(decision.actions)
        for each in decision.announcements:
            await self._announcer.announce(each)
        return decision.again_after.total_seconds() if decision.again_after is not None else None

    def _failed(self, key: ObjectId, error: Exception, pause_s: float) -> None:
        self.failures += 1
        log.info("work.failed key=%s again_in_s=%.3f reason=%r", key, pause_s, str(error))


def kept(kind: str, api_version: str, content: dict[str, Json]) -> dict[str, Json]:
    """Return what is kept of an object: whole, but for notes of writers and for Secrets that nothing names."""
    stored = Stored({"apiVersion": api_version, "kind": kind, **content})
    slim = stored.edited(None, "metadata", "managedFields")
    if slim.annotation(_LAST_APPLIED):
        slim = slim.edited(None, "metadata", "annotations", _LAST_APPLIED)
    if kind == "Secret" and (slim.text("type") in _UNREAD_SECRETS or slim.label(SECRET_TYPE)):
        slim = slim.edited(None, "data")
    return dict(slim.tree)
