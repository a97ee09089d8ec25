"""What pools leave behind: inventory entries with marks of pools that are gone, and namespaces without a cluster."""

from datetime import datetime, timedelta
from typing import Final

from garboard.fleet.controllers.actions import Deciding, Decision, Delete, Replace, ReplaceStatus
from garboard.fleet.controllers.cache import BY_NAMESPACE, BY_POOL, ObjectCache, own_customization
from garboard.fleet.controllers.inventory import holding_pool, is_reserved, released
from garboard.fleet.controllers.marks import (
    CLAIM,
    DEPROVISION,
    GROUP,
    POOL_CLUSTERS,
    POOL_NAME_OF_NAMESPACE,
    POOL_NAMESPACE,
    customization_finalizer,
)
from garboard.fleet.controllers.pool_snapshot import promised
from garboard.fleet.controllers.stored import Stored
from garboard.values import dataclass

_OLD_ENOUGH: Final = timedelta(minutes=5)
_OTHER_FINALIZERS: Final = (DEPROVISION, POOL_CLUSTERS, CLAIM)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntrySnapshot:
    """An inventory entry, the pools of its namespace, and whether a cluster is made with it."""

    entry: Stored
    pools: frozenset[str]
    is_used: bool

    @classmethod
    def gather(cls, cache: ObjectCache, namespace: str, name: str) -> "EntrySnapshot | None":
        entry = cache.get("ClusterDeploymentCustomization", namespace, name)
        if entry is None:
            return None
        pools = frozenset(each.name for each in cache.indexed("ClusterPool", BY_NAMESPACE, namespace))
        held_by = cache.indexed("ClusterDeployment", BY_POOL, f"{namespace}/{holding_pool(entry)}")
        is_used = any(own_customization(each) == name for each in held_by)
        return cls(entry=entry, pools=pools, is_used=is_used)


def decide_entry(snapshot: EntrySnapshot, now: datetime) -> Decision:
    """Free an entry of what a pool that is gone has written there."""
    deciding, entry = Deciding(now), snapshot.entry
    held_by = holding_pool(entry)
    if is_reserved(entry) and held_by and held_by not in snapshot.pools and not snapshot.is_used:
        deciding.do(ReplaceStatus(released(entry, now)), needs_fresh=True)
        return deciding.decision()
    kept = entry
    for each in entry.finalizers:
        group, _, pool = each.partition("/")
        is_pools = group == GROUP and each not in _OTHER_FINALIZERS
        if is_pools and pool not in snapshot.pools and not (is_reserved(entry) and held_by == pool):
            kept = kept.without_finalizer(customization_finalizer(pool))
    if kept is not entry:
        deciding.do(Replace(kept), needs_fresh=True)
    return deciding.decision()


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceSnapshot:
    """A namespace that a pool has made, and what it is for."""

    namespace: Stored
    pool: Stored | None
    has_deployment: bool

    @classmethod
    def gather(cls, cache: ObjectCache, name: str) -> "NamespaceSnapshot | None":
        namespace = cache.get("Namespace", "", name)
        if namespace is None or not namespace.label(POOL_NAME_OF_NAMESPACE):
            return None
        return cls(
            namespace=namespace,
            pool=cache.get("ClusterPool", namespace.label(POOL_NAMESPACE), namespace.label(POOL_NAME_OF_NAMESPACE)),
            has_deployment=bool(cache.indexed("ClusterDeployment", BY_NAMESPACE, name)),
        )


def decide_namespace(snapshot: NamespaceSnapshot, now: datetime) -> Decision:
    """Delete a namespace in which no cluster is, nor is to come."""
    deciding, namespace = Deciding(now), snapshot.namespace
    is_promised = snapshot.pool is not None and namespace.name in promised(snapshot.pool)
    if snapshot.has_deployment or namespace.is_deleting or is_promised:
        return deciding.decision()
    left = namespace.created + _OLD_ENOUGH - now
    if left > timedelta(0):
        deciding.look_again(left)
    else:
        deciding.do(Delete(namespace), needs_fresh=True)
    return deciding.decision()
