"""What is to be done about a ClusterPool: inventory, status, claims, removals, size, RBAC copies, and its end."""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta

from garboard.fleet.controllers.actions import Create, Deciding, Decision, Delete, Replace, ReplaceStatus
from garboard.fleet.controllers.cache import own_customization
from garboard.fleet.controllers.conditions import POOL_CONDITIONS, Said, condition, initialized, with_conditions
from garboard.fleet.controllers.inventory import (
    finalizer_changes,
    followed,
    holder,
    holding_pool,
    is_held_by,
    is_reserved,
    released,
    reserved,
)
from garboard.fleet.controllers.marks import (
    CREATING,
    POOL_ADMIN,
    POOL_ADMIN_BINDING,
    POOL_CLUSTERS,
    POOL_NAME,
    POOL_NAMESPACE,
    REPLACE_STALE,
)
from garboard.fleet.controllers.pool_claims import assign_claims, repair_links
from garboard.fleet.controllers.pool_creation import complete_creations
from garboard.fleet.controllers.pool_sizing import PoolBudget, size_pool
from garboard.fleet.controllers.pool_snapshot import Buckets, PoolSnapshot, Staleness, is_broken, promised
from garboard.fleet.controllers.stored import Stored
from garboard.values import Json

DELETION_LOOK: timedelta = timedelta(minutes=1)


def decide_pool(snapshot: PoolSnapshot, now: datetime, fresh_names: Sequence[str]) -> Decision:
    """Return what a pool needs; `fresh_names` are random parts of names for clusters that it may create."""
    deciding, pool = Deciding(now), snapshot.pool
    if pool.is_deleting:
        _end(snapshot, deciding)
        return deciding.decision()
    if deciding.status(pool, initialized(pool, POOL_CONDITIONS, now)):
        return deciding.decision()
    refusal = _refusal(pool)
    if deciding.status(pool, with_conditions(pool, [refusal] if refusal else [], now)):
        if refusal is not None and refusal.status == "False":
            deciding.announce(pool, "Warning", refusal.reason, refusal.message)
        return deciding.decision()
    if refusal is not None and refusal.status == "False":
        return deciding.decision()
    if deciding.replace(pool, pool.with_finalizer(POOL_CLUSTERS)):
        return deciding.decision()
    buckets, missing = Buckets.of(snapshot.clusters, snapshot.claims), snapshot.missing()
    stale = None if missing else Staleness.of(snapshot, buckets.unclaimed)
    budget = PoolBudget.of(snapshot, buckets)
    _status(snapshot, buckets, missing, stale, deciding)
    _finalizers(snapshot, deciding)
    _follow_inventory(snapshot, deciding)
    repair_links(snapshot, deciding)
    assign_claims(snapshot, buckets, missing, deciding)
    budget = _remove_marked(buckets, budget, deciding)
    if not missing and not complete_creations(snapshot, deciding):
        is_replaced = pool.annotation(REPLACE_STALE) == "true"
        size_pool(snapshot, buckets, stale if is_replaced else None, budget, fresh_names, deciding)
    elif missing:
        size_pool(snapshot, buckets, None, budget, (), deciding)
    _copy_admins(snapshot, deciding)
    return deciding.decision()


def _refusal(pool: Stored) -> Said | None:
    """Return why a pool cannot be served, or that it can be again; there is no power control here."""
    running, size = pool.number("spec", "runningCount"), pool.number("spec", "size") or 0
    if running not in (None, 0, size):
        message = f"runningCount is {running} and size is {size}: clusters cannot be hibernated here, so leave it out"
        return Said("Accepted", "False", "RunningCountUnsupported", message)
    return Said("Accepted", "True", "Accepted", "") if condition(pool, "Accepted") is not None else None


def _status(
    snapshot: PoolSnapshot, buckets: Buckets, missing: Sequence[str], stale: Staleness | None, deciding: Deciding
) -> None:
    """Write sizes and conditions, if they are not written so already."""
    pool = snapshot.pool
    sizes: dict[str, Json] = {
        "size": len(buckets.unclaimed), "standby": len(buckets.standby), "ready": len(buckets.assignable),
    }  # fmt: skip
    said = [
        Said("MissingDependencies", "True", "Missing", "; ".join(missing))
        if missing
        else Said("MissingDependencies", "False", "Verified", "Dependencies verified"),
        _capacity(snapshot),
    ]
    said += [each for each in (snapshot.inventory.condition(), _currency(stale)) if each is not None]
    after = with_conditions(pool.edited({**pool.mapping("status"), **sizes}, "status"), said, deciding.now)
    deciding.status(pool, after)
    before = condition(pool, "MissingDependencies")
    if missing and (before is None or before.message != said[0].message):
        deciding.announce(pool, "Warning", "MissingDependencies", said[0].message)


def _capacity(snapshot: PoolSnapshot) -> Said:
    most = snapshot.pool.number("spec", "maxSize")
    if most is not None and len(snapshot.clusters) + len(snapshot.creating) >= most:
        return Said("CapacityAvailable", "False", "MaxCapacity", f"Pool is at maximum capacity of {most} clusters")
    return Said("CapacityAvailable", "True", "Available", "There is capacity to add more clusters to the pool")


def _currency(stale: Staleness | None) -> Said | None:
    if stale is None:
        return None
    if stale.mismatched or stale.unlisted:
        names = ", ".join(sorted(each.name for each in (*stale.mismatched, *stale.unlisted)))
        return Said("AllClustersCurrent", "False", "SomeClusterDeploymentsStale", f"Stale ClusterDeployments: {names}")
    if stale.unknown:
        names = ", ".join(sorted(each.name for each in stale.unknown))
        message = f"ClusterDeployments of unknown age: {names}"
        return Said("AllClustersCurrent", "Unknown", "SomeClusterDeploymentsUnknown", message)
    return Said("AllClustersCurrent", "True", "ClusterDeploymentsCurrent", "All ClusterDeployments are current")


def _finalizers(snapshot: PoolSnapshot, deciding: Deciding) -> None:
    for before, after in finalizer_changes(snapshot.pool, snapshot.customizations):
        # Without the finalizer an entry may vanish: nothing of this pool may need it then.
        deciding.replace(before, after)


def _follow_inventory(snapshot: PoolSnapshot, deciding: Deciding) -> None:
    """Write into each entry what has become of the cluster that it is used for."""
    pool, clusters = snapshot.pool, {each.name: each for each in snapshot.clusters}
    users = {own_customization(each): each for each in snapshot.clusters if own_customization(each)}
    for entry in snapshot.customizations.values():
        user = users.get(entry.name)
        if user is not None and not is_reserved(entry):
            others = (holder(entry), holding_pool(entry))
            if others[1] in ("", pool.name):
                deciding.do(ReplaceStatus(reserved(entry, pool, user.name, deciding.now)))
        elif is_reserved(entry) and holding_pool(entry) == pool.name:
            _follow_reserved(snapshot, entry, clusters.get(holder(entry)), deciding)


def _follow_reserved(snapshot: PoolSnapshot, entry: Stored, cluster: Stored | None, deciding: Deciding) -> None:
    if cluster is None and holder(entry) in snapshot.creating:
        return
    if cluster is None or own_customization(cluster) != entry.name:
        deciding.do(ReplaceStatus(released(entry, deciding.now)), needs_fresh=True)
    else:
        deciding.status(entry, followed(entry, cluster, is_broken=is_broken(cluster), now=deciding.now))


def _remove_marked(buckets: Buckets, budget: PoolBudget, deciding: Deciding) -> PoolBudget:
    """Delete the clusters that their claims have given back, as many as may be deleted at once."""
    removed = buckets.marked[: budget.left]
    deciding.do(*map(Delete, removed))
    return budget.less(len(removed))


def _copy_admins(snapshot: PoolSnapshot, deciding: Deciding) -> None:
    """Give the admins of the pool their rights in the namespaces of its clusters."""
    subjects: list[Json] = []
    for binding in snapshot.admin_bindings:
        subjects += [each for each in binding.entries("subjects") if each not in subjects]
    for cluster in snapshot.clusters:
        held = snapshot.admin_copies.get(cluster.name)
        if cluster.is_deleting:
            continue
        if held is None:
            if subjects:
                deciding.do(Create(_admin_binding(snapshot.pool, cluster.name, subjects)))
        elif not subjects:
            deciding.do(Delete(held))
        elif json.dumps(held.at("subjects"), sort_keys=True) != json.dumps(subjects, sort_keys=True):
            deciding.do(Replace(held.edited(subjects, "subjects")))


def _admin_binding(pool: Stored, namespace: str, subjects: list[Json]) -> Stored:
    labels: dict[str, Json] = {POOL_NAMESPACE: pool.namespace, POOL_NAME: pool.name}
    return Stored(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": POOL_ADMIN_BINDING, "namespace": namespace, "labels": labels},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": POOL_ADMIN},
            "subjects": subjects,
        }
    )


def _end(snapshot: PoolSnapshot, deciding: Deciding) -> None:
    """Take a pool's clusters away, then its marks on the inventory, then the pool itself."""
    pool, now = snapshot.pool, deciding.now
    if POOL_CLUSTERS not in pool.finalizers:
        return
    buckets = Buckets.of(snapshot.clusters, snapshot.claims)
    budget = PoolBudget.of(snapshot, buckets)
    names = ", ".join(sorted([*(each.name for each in snapshot.clusters), *snapshot.creating]))
    said = (
        Said("DeletionPossible", "False", "ClusterDeploymentsPendingCleanup", f"ClusterDeployments left: {names}")
        if names
        else Said("DeletionPossible", "True", "DeletionPossible", "No ClusterDeployments are left")
    )
    deciding.status(pool, with_conditions(pool, [said], now))
    repair_links(snapshot, deciding)
    budget = _remove_marked(buckets, budget, deciding)
    deciding.do(*map(Delete, buckets.unclaimed[: budget.left]))
    _give_up_creations(snapshot, deciding)
    _follow_inventory(snapshot, deciding)
    if names:
        return
    for before, after in finalizer_changes(pool, snapshot.customizations, is_ending=True):
        deciding.replace(before, after)
    held = [each for each in snapshot.customizations.values() if is_held_by(each, pool) and holding_pool(each)]
    if deciding.is_idle and not held:
        deciding.do(Replace(pool.without_finalizer(POOL_CLUSTERS)), needs_fresh=True)


def _give_up_creations(snapshot: PoolSnapshot, deciding: Deciding) -> None:
    """Make sure that clusters which were promised cannot come any more: their namespaces go first.

    Whoever is still about to create such a cluster needs its namespace, and the promise that is taken back here.
    """
    left = [each for each in promised(snapshot.pool) if each in snapshot.creating]
    waiting = [snapshot.namespaces[each] for each in left if each in snapshot.namespaces]
    for each in waiting:
        if not each.is_deleting:
            deciding.do(Delete(each), needs_fresh=True)
    kept = ",".join(each for each in left if each in snapshot.namespaces) or None
    if kept != (snapshot.pool.annotation(CREATING) or None) and deciding.is_idle:
        deciding.do(Replace(snapshot.pool.edited(kept, "metadata", "annotations", CREATING)), needs_fresh=True)
