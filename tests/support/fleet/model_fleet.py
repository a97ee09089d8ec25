"""A fleet in memory: an API server, controllers with caches that may be late by kind, users, and installers."""

import asyncio
import base64
import random
from collections.abc import Collection, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from garboard.errors import GarboardError
from garboard.fleet.controllers import Action, ObjectCache, ObjectId, Reconciled, Stored, keys_for
from garboard.fleet.controllers.attempt import documents_name
from garboard.fleet.controllers.cache import claim_of, own_customization, pool_of
from garboard.fleet.controllers.conditions import is_status
from garboard.fleet.controllers.deciding import KEYED_KINDS, WATCHED_KINDS
from garboard.fleet.controllers.marks import POOL_CLUSTERS
from garboard.kube import ObjectRef
from garboard.node.fleet.control.controller import Shard
from garboard.node.fleet.control.writing import FleetWriter, FreshReader
from tests.support.kube.fake_cluster import FakeCluster, conflict, lost

CONFIG = "apiVersion: v1\nmetadata: {name: x}\nbaseDomain: x\nplatform: {none: {}}\n"


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


class NoRuns:
    def start(self, attempt: Stored) -> None:
        return

    def stop(self, attempt: ObjectId) -> None:
        return


class ModelController:
    """One process: it knows what it was told so far, and is in the middle of carrying out a decision, or not."""

    def __init__(self, fleet: "ModelFleet", seed: int, shard: Shard) -> None:
        self._fleet, self._random, self.shard = fleet, random.Random(seed), shard
        self.restart()

    def restart(self) -> None:
        """Begin anew, with what the API server has now; nothing is left of a decision."""
        self.cache = ObjectCache()
        self.writer = FleetWriter(self._fleet.api, self.cache, NoRuns())
        self.reader = FreshReader(self._fleet.api, self.cache)
        self.deciding = Reconciled(cache=self.cache, fresh_names=self._names)
        self._told = dict.fromkeys(WATCHED_KINDS, len(self._fleet.api._history))
        self.dirty: dict[ObjectId, None] = {}
        self.timers: dict[ObjectId, datetime] = {}
        self.pending: list[Action] = []
        self._versions: dict[tuple[ObjectId, str], str] = {}
        self.key: ObjectId | None = None
        for kind, api_version in WATCHED_KINDS.items():
            for each in self._fleet.api.all(kind, api_version=api_version):
                self.cache.put(Stored(each))
        for kind in WATCHED_KINDS:
            for stored in self.cache.all(kind):
                self._wake(stored)

    def _names(self) -> list[str]:
        return ["".join(self._random.choices("bcdfghjklmnpqrstvwxz2456789", k=5)) for _ in range(5)]

    def _wake(self, stored: Stored) -> None:
        self._wake_keys(keys_for(stored, self.cache))

    def _wake_keys(self, keys: Iterable[ObjectId]) -> None:
        self.dirty |= dict.fromkeys(each for each in keys if self.shard.has(each.namespace or each.name))

    def hear(self, kinds: Collection[str], count: int) -> None:
        """Be told the next changes of some kinds: the watch of each kind goes at its own pace."""
        history = self._fleet.api._history
        for kind in kinds:
            left = count
            while left and self._told[kind] < len(history):
                change = history[self._told[kind]]
                self._told[kind] += 1
                if change.resource.kind == kind:
                    left -= 1
                    self._hear_one(change)

    def _hear_one(self, change: Any) -> None:
        stored = Stored(change.after if change.after is not None else change.before)
        if change.after is not None:
            self.cache.put(stored)
        else:
            self.cache.remove(stored.id, change.version)
        self._wake(stored)

    def look_at_everything(self) -> None:
        """Decide about everything again, out of what is known so far."""
        self._wake_keys(each.id for kind in KEYED_KINDS for each in self.cache.all(kind))

    @property
    def is_idle(self) -> bool:
        changes = len(self._fleet.api._history)
        return not self.dirty and not self.pending and all(each == changes for each in self._told.values())

    async def step(self) -> None:
        """Carry out the next action, or make the next decision."""
        if not self.pending:
            await self._decide()
            return
        action = self.pending.pop(0)
        try:
            await self.writer.carry_out_one(action, self._versions)
        except GarboardError:
            self.pending = []
            assert self.key is not None
            self.dirty[self.key] = None

    async def _decide(self) -> None:
        now = self._fleet.now
        self.dirty |= dict.fromkeys(key for key, at in self.timers.items() if at <= now)
        self.timers = {key: at for key, at in self.timers.items() if at > now}
        if not self.dirty:
            return
        self.key = self._random.choice(sorted(self.dirty, key=str))
        del self.dirty[self.key]
        decision = self.deciding.decide(self.key, now)
        if decision.needs_fresh:
            try:
                await self.reader.read(self.key)
            except GarboardError:
                self.dirty[self.key] = None
                return
            decision = self.deciding.decide(self.key, now)
        self.pending, self._versions = list(decision.actions), {}
        if decision.again_after is not None:
            self.timers[self.key] = now + decision.again_after


class ModelFleet:
    """Everything, and what must hold at every moment; the controllers are those of the shards in turn."""

    def __init__(self, seed: int, controllers: int = 2, shards: int = 1) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.api = FakeCluster(now=lambda: self.now)
        self.random = random.Random(seed)
        self.api.put("Namespace", {"metadata": {"name": "fleet"}}, api_version="v1")
        self.controllers = [
            ModelController(self, seed + each, Shard(each % shards, shards)) for each in range(controllers)
        ]
        self.limits: dict[str, int] = {}
        self.log: list[str] = []

    def objects(self, kind: str) -> list[Stored]:
        return [Stored(each) for each in self.api.all(kind, api_version=WATCHED_KINDS[kind])]

    # What users do.

    def put(self, kind: str, name: str, spec: dict[str, Any], *, namespace: str = "fleet", **others: Any) -> None:
        self.api.put(kind, {"metadata": {"name": name, "namespace": namespace}, "spec": spec, **others})

    def dependencies(self) -> None:
        self.api.put("ClusterImageSet", {"metadata": {"name": "img"}, "spec": {"releaseImage": "r:1"}})
        data = {"install-config.yaml": encoded(CONFIG)}
        secret = {"metadata": {"name": "template", "namespace": "fleet"}, "data": data}
        self.api.put("Secret", secret, api_version="v1")

    def pool(self, name: str, size: int, *, inventory: list[str] | None = None, **spec: Any) -> None:
        listed = {"inventory": [{"name": each} for each in inventory]} if inventory is not None else {}
        if "maxSize" in spec:
            self.limits[name] = spec["maxSize"]
        base = {"platform": {"none": {}}, "baseDomain": "example.com", "imageSetRef": {"name": "img"}, "size": size}
        self.put(
            "ClusterPool", name, {**base, "installConfigSecretTemplateRef": {"name": "template"}, **listed, **spec}
        )

    def entry(self, name: str, patches: list[Any] | None = None) -> None:
        self.put("ClusterDeploymentCustomization", name, {"installConfigPatches": patches or []})

    def claim(self, name: str, pool: str, **spec: Any) -> None:
        self.put("ClusterClaim", name, {"clusterPoolName": pool, **spec})

    async def delete(self, kind: str, name: str, namespace: str = "fleet") -> None:
        await self.api.delete(ObjectRef(kind, namespace, name, WATCHED_KINDS[kind]))

    # What installers do.

    def install(self, *, fails: float = 0.0) -> None:
        """Let one of the attempts that can go on do so."""
        moves = [*self._provision_moves(fails), *self._deprovision_moves()]
        if moves:
            stored = self.random.choice(moves)
            self.api.put(stored.kind, dict(stored.tree))

    def _provision_moves(self, fails: float) -> Iterator[Stored]:
        for each in self.objects("ClusterProvision"):
            stage = each.text("spec", "stage")
            documents = self.api.get("Secret", each.namespace, documents_name(each), api_version="v1")
            if each.is_deleting or stage in ("complete", "failed") or documents is None:
                continue
            if self.random.random() < fails:
                failed = each.edited("failed", "spec", "stage")
                said: list[Any] = [{
                    "type": "ClusterProvisionFailed", "status": "True", "reason": "ManifestPatchNoMatch", "message": "",
                    "lastTransitionTime": self.now.isoformat(),
                }]  # fmt: skip
                yield failed.edited(said, "status", "conditions")
            elif stage == "provisioning":
                yield each.edited("complete", "spec", "stage")
            elif not each.text("spec", "infraID"):
                owned = each.edited(f"infra-{each.name}", "spec", "infraID").edited("id", "spec", "clusterID")
                yield owned.edited({"name": "kubeconfig"}, "spec", "adminKubeconfigSecretRef")

    def _deprovision_moves(self) -> Iterator[Stored]:
        for each in self.objects("ClusterDeprovision"):
            if each.at("status", "completed") is not True:
                yield each.edited(True, "status", "completed")

    # How the world goes on.

    async def tick(self, *, faults: float = 0.1, fails: float = 0.05, restarts: float = 0.02) -> None:
        """Let one thing happen."""
        each, luck = self.random.choice(self.controllers), self.random.random()
        if luck < restarts:
            each.restart()
        elif luck < 0.25:
            kinds = self.random.choices((*WATCHED_KINDS,), k=2) if luck < 0.24 else [*WATCHED_KINDS]
            each.hear(kinds, self.random.randint(1, 20))
        elif luck < 0.28:
            each.look_at_everything()
        elif luck < 0.34:
            self.install(fails=fails)
        elif luck < 0.37:
            self.now += timedelta(minutes=self.random.choice((0, 1, 15)))
            self.api.collect_garbage()
        else:
            for _ in range(self.random.choice((1, 1, 1, 4))):
                self._fault(faults)
                await each.step()
                self.api.faults.clear()
                self.check()
        self.check()

    def _fault(self, probability: float) -> None:
        luck = self.random.random()
        if luck < probability / 2:
            self.api.fail(lost, is_done=True)
        elif luck < probability:
            self.api.fail(conflict if luck < probability * 0.75 else lost)

    async def rest(self) -> None:
        """Let everybody hear everything, and do what follows from it, without time or installers going on."""
        for _ in range(4000):
            for each in self.controllers:
                each.hear(WATCHED_KINDS, 10_000)
            if all(each.is_idle for each in self.controllers):
                return
            for each in self.controllers:
                if each.dirty or each.pending:
                    await each.step()
            self.check()
        raise AssertionError(f"it does not come to rest: {[str(key) for c in self.controllers for key in c.dirty]}")

    async def settle(self, *, fails: float = 0.0, rounds: int = 12) -> None:
        """Let everything come to rest: everybody hears everything, time passes, installers succeed."""
        for _ in range(rounds):
            await self.rest()
            for _ in range(20):
                self.install(fails=fails)
            self.api.collect_garbage()
            self.pass_time(timedelta(minutes=11))

    def pass_time(self, length: timedelta) -> None:
        self.now += length
        for each in self.controllers:
            each.dirty |= dict.fromkeys(key for key, at in each.timers.items() if at <= self.now)

    def check(self) -> None:
        """Raise if something holds that must never hold."""
        clusters = self.objects("ClusterDeployment")
        pools = {(each.namespace, each.name): each for each in self.objects("ClusterPool")}
        used: dict[str, str] = {}
        for each in (each for each in clusters if pool_of(each)[1]):
            entry = own_customization(each)
            assert not entry or entry not in used, f"{entry} is used by {used[entry]} and {each.name}"
            used[entry] = each.name
            pool = pools.get(pool_of(each))
            assert pool is not None, f"{each.name} belongs to a pool that is gone"
            assert POOL_CLUSTERS in pool.finalizers, f"nothing keeps the pool of {each.name}"
        for name, most in self.limits.items():
            count = sum(1 for each in clusters if pool_of(each)[1] == name)
            assert count <= most, f"{name} has {count} clusters"
        had: dict[str, str] = {}
        for claim in self.objects("ClusterClaim"):
            where = claim.text("spec", "namespace")
            if is_status(claim, "Pending", "False") and where:
                assert where not in had, f"{where} was given to {had[where]} and {claim.name}"
                had[where] = claim.name
        owners = [claim_of(each) for each in clusters if claim_of(each)]
        assert len(owners) == len(set(owners)), f"a claim has two clusters: {owners}"

    def finalizers(self) -> list[str]:
        """Return every finalizer of a fleet that is left anywhere."""
        kinds = (*KEYED_KINDS,)
        return [f"{each.id}: {name}" for kind in kinds for each in self.objects(kind) for name in each.finalizers]


async def ending(fleet: ModelFleet) -> None:
    """Delete everything, and let it end."""
    for kind in ("ClusterPool", "ClusterClaim"):
        for each in fleet.objects(kind):
            await fleet.delete(kind, each.name)
    await fleet.settle(rounds=20)
    for each in fleet.objects("ClusterDeploymentCustomization"):
        await fleet.delete(each.kind, each.name)
    await fleet.settle(rounds=6)


def run(coroutine: Any) -> None:
    asyncio.run(coroutine)
