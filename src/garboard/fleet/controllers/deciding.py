"""Which decision is made for which key, what wakes it, and what it has to read anew before it matters."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Final

from garboard.fleet.controllers.actions import Decision
from garboard.fleet.controllers.attempt import AttemptSnapshot, MakeJobs, RunState, decide_attempt
from garboard.fleet.controllers.cache import (
    BY_CUSTOMIZATION,
    BY_DEPLOYMENT,
    BY_NAMESPACE,
    BY_POOL,
    BY_SECRET,
    ObjectCache,
    claim_of,
    own_customization,
    pool_of,
)
from garboard.fleet.controllers.claim import ClaimSnapshot, decide_claim
from garboard.fleet.controllers.deployment import DeploymentSnapshot, decide_deployment
from garboard.fleet.controllers.leftovers import EntrySnapshot, NamespaceSnapshot, decide_entry, decide_namespace
from garboard.fleet.controllers.marks import (
    API_VERSION,
    DEPLOYMENT_NAME,
    GROUP,
    POOL_NAME,
    POOL_NAME_OF_NAMESPACE,
    POOL_NAMESPACE,
)
from garboard.fleet.controllers.pool import decide_pool
from garboard.fleet.controllers.pool_snapshot import PoolSnapshot
from garboard.fleet.controllers.provisions import is_under_way
from garboard.fleet.controllers.stored import ObjectId, Stored
from garboard.values import dataclass

# Kinds with a decision of their own.
KEYED_KINDS: Final = (
    "ClusterPool", "ClusterClaim", "ClusterDeployment", "ClusterProvision", "ClusterDeprovision",
    "ClusterDeploymentCustomization", "Namespace",
)  # fmt: skip
WATCHED_KINDS: Final = {
    **dict.fromkeys(KEYED_KINDS[:-1], API_VERSION),
    "ClusterImageSet": API_VERSION,
    "Namespace": "v1",
    "Secret": "v1",
    "ConfigMap": "v1",
    "Role": "rbac.authorization.k8s.io/v1",
    "RoleBinding": "rbac.authorization.k8s.io/v1",
    "Job": "batch/v1",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciled:
    """Makes the decision about one object out of what a cache knows."""

    cache: ObjectCache
    fresh_names: Callable[[], Sequence[str]]  # random parts of names of new clusters
    make_jobs: MakeJobs | None = None
    run_state: Callable[[ObjectId], RunState] = lambda _: "absent"

    def decide(self, key: ObjectId, now: datetime) -> Decision:
        """Return what is to be done about an object; nothing about one that is not there."""
        where, name, cache = key.namespace, key.name, self.cache
        match key.kind:
            case "ClusterPool":
                pool = PoolSnapshot.gather(cache, where, name)
                return decide_pool(pool, now, self.fresh_names()) if pool else Decision()
            case "ClusterClaim":
                claim = ClaimSnapshot.gather(cache, where, name)
                return decide_claim(claim, now) if claim else Decision()
            case "ClusterDeployment":
                deployment = DeploymentSnapshot.gather(cache, where, name)
                return decide_deployment(deployment, now) if deployment else Decision()
            case "ClusterDeploymentCustomization":
                entry = EntrySnapshot.gather(cache, where, name)
                return decide_entry(entry, now) if entry else Decision()
            case "Namespace":
                namespace = NamespaceSnapshot.gather(cache, name)
                return decide_namespace(namespace, now) if namespace else Decision()
            case _:
                attempt = AttemptSnapshot.gather(cache, key.kind, where, name, self.run_state(key))
                return decide_attempt(attempt, now, self.make_jobs) if attempt else Decision()


@dataclass(frozen=True, slots=True)
class FreshList:
    """Objects that are read anew: those of a kind, in one namespace if that is given, that have these labels.

    What is listed replaces what the cache has under the value of the index.
    """

    kind: str
    namespace: str
    labels: str
    index: str
    value: str


def fresh_lists(key: ObjectId) -> tuple[FreshList, ...]:
    """Return what is read anew, in this order, after the object itself, before a decision that needs it.

    A pool is read before its clusters: a name leaves the pool only after its cluster can be seen.
    """
    of = f"{key.namespace}/{key.name}"
    entries = FreshList("ClusterDeploymentCustomization", key.namespace, "", BY_NAMESPACE, key.namespace)
    if key.kind == "ClusterPool":
        labels = f"{POOL_NAMESPACE}={key.namespace},{POOL_NAME}={key.name}"
        of_namespace = f"{POOL_NAMESPACE}={key.namespace},{POOL_NAME_OF_NAMESPACE}={key.name}"
        return (
            FreshList("ClusterDeployment", "", labels, BY_POOL, of),
            FreshList("ClusterClaim", key.namespace, "", BY_NAMESPACE, key.namespace),
            entries,
            FreshList("Namespace", "", of_namespace, BY_POOL, of),
        )
    if key.kind == "ClusterDeploymentCustomization":
        return (FreshList("ClusterPool", key.namespace, "", BY_NAMESPACE, key.namespace),)
    if key.kind == "Namespace":
        return (FreshList("ClusterDeployment", key.name, "", BY_NAMESPACE, key.name),)
    if key.kind == "ClusterDeployment":
        return (FreshList("ClusterProvision", key.namespace, "", BY_NAMESPACE, key.namespace),)
    return ()


def keys_for(changed: Stored, cache: ObjectCache) -> Iterator[ObjectId]:
    """Yield everything that is to be decided again because an object is new, changed or gone."""
    where, name = changed.namespace, changed.name
    if changed.kind in KEYED_KINDS and (changed.kind != "Namespace" or changed.label(POOL_NAME_OF_NAMESPACE)):
        yield changed.id
    match changed.kind:
        case "ClusterDeployment":
            yield from _for_deployment(changed, cache)
        case "ClusterClaim":
            yield ObjectId("ClusterPool", where, changed.text("spec", "clusterPoolName"))
            if changed.text("spec", "namespace"):
                yield ObjectId(
                    "ClusterDeployment", changed.text("spec", "namespace"), changed.text("spec", "namespace")
                )
        case "ClusterPool":
            yield from (each.id for each in cache.indexed("ClusterClaim", BY_POOL, f"{where}/{name}"))
            yield from (each.id for each in cache.indexed("Namespace", BY_POOL, f"{where}/{name}"))
            yield from _held_entries(changed, cache)
        case "ClusterDeploymentCustomization":
            yield from _ids(cache, BY_CUSTOMIZATION, f"{where}/{name}")
            # A pool whose finalizer it carries may list it no more.
            marks = (each.removeprefix(f"{GROUP}/") for each in changed.finalizers)
            yield from (ObjectId("ClusterPool", where, each) for each in marks)
        case "ClusterImageSet":
            yield from (each.id for each in cache.all("ClusterPool"))
            made = cache.all("ClusterDeployment")
            yield from (each.id for each in made if each.at("spec", "installed") is not True)
            yield from (each.id for each in cache.all("ClusterProvision") if is_under_way(each))
        case "Secret" | "ConfigMap":
            yield from _ids(cache, BY_SECRET, f"{where}/{name}")
            yield from _owners(changed)
        case "Namespace":
            if changed.label(POOL_NAME_OF_NAMESPACE):
                yield ObjectId("ClusterPool", changed.label(POOL_NAMESPACE), changed.label(POOL_NAME_OF_NAMESPACE))
        case "Role" | "RoleBinding":
            yield from _for_rights(changed, cache)
        case _:
            yield from _owners(changed)


def _for_deployment(changed: Stored, cache: ObjectCache) -> Iterator[ObjectId]:
    namespace, pool = pool_of(changed)
    if pool:
        yield ObjectId("ClusterPool", namespace, pool)
        yield ObjectId("Namespace", "", changed.namespace)
        if claim_of(changed):
            yield ObjectId("ClusterClaim", namespace, claim_of(changed))
        if own_customization(changed):
            yield ObjectId("ClusterDeploymentCustomization", namespace, own_customization(changed))
    for kind in ("ClusterProvision", "ClusterDeprovision"):
        yield from (each.id for each in cache.indexed(kind, BY_NAMESPACE, changed.namespace))


def _held_entries(pool: Stored, cache: ObjectCache) -> Iterator[ObjectId]:
    for each in cache.indexed("ClusterDeploymentCustomization", BY_NAMESPACE, pool.namespace):
        if f"{GROUP}/{pool.name}" in each.finalizers:
            yield each.id


def _ids(cache: ObjectCache, index: str, value: str) -> Iterator[ObjectId]:
    """Yield what names an object: pools, deployments, and attempts that may still wait for it."""
    yield from (each.id for each in cache.indexed("ClusterPool", index, value))
    for deployment in cache.indexed("ClusterDeployment", index, value):
        yield deployment.id
        attempts = cache.indexed("ClusterProvision", BY_DEPLOYMENT, f"{deployment.namespace}/{deployment.name}")
        yield from (each.id for each in attempts)


def _owners(changed: Stored) -> Iterator[ObjectId]:
    for each in changed.entries("metadata", "ownerReferences"):
        if each.get("kind") in KEYED_KINDS:
            yield ObjectId(str(each.get("kind")), changed.namespace, str(each.get("name")))
    if changed.label(DEPLOYMENT_NAME):
        yield ObjectId("ClusterDeployment", changed.namespace, changed.label(DEPLOYMENT_NAME))


def _for_rights(changed: Stored, cache: ObjectCache) -> Iterator[ObjectId]:
    yield from (each.id for each in cache.indexed("ClusterPool", BY_NAMESPACE, changed.namespace))
    for cluster in cache.indexed("ClusterDeployment", BY_NAMESPACE, changed.namespace):
        namespace, pool = pool_of(cluster)
        if pool:
            yield ObjectId("ClusterPool", namespace, pool)
        if claim_of(cluster):
            yield ObjectId("ClusterClaim", namespace, claim_of(cluster))
