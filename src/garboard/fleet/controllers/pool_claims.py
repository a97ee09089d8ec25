"""Claims of a pool and its clusters: which gets which, in which order, and what the others wait for."""

from collections.abc import Sequence
from datetime import datetime

from garboard.fleet.controllers.actions import Deciding, Replace
from garboard.fleet.controllers.cache import claim_of
from garboard.fleet.controllers.conditions import Said, is_status, with_conditions
from garboard.fleet.controllers.marks import REMOVE
from garboard.fleet.controllers.pool_snapshot import Buckets, PoolSnapshot, unassigned
from garboard.fleet.controllers.stored import Stored, write_time


def repair_links(snapshot: PoolSnapshot, deciding: Deciding) -> None:
    """Complete assignments of which only one side was written, and give up those that cannot be completed."""
    claims = {each.name: each for each in snapshot.claims}
    for cluster in snapshot.clusters:
        name = claim_of(cluster)
        claim = claims.get(name)
        if not name or cluster.is_deleting:
            continue
        if claim is None and cluster.annotation(REMOVE) != "true":
            # Its claim is gone, and nobody else gets a cluster that somebody has used.
            marked = cluster.edited("true", "metadata", "annotations", REMOVE)
            deciding.do(Replace(marked), needs_fresh=True)
        elif claim is not None and not claim.text("spec", "namespace") and not claim.is_deleting:
            deciding.do(Replace(claim.edited(cluster.namespace, "spec", "namespace")))


def assign_claims(snapshot: PoolSnapshot, buckets: Buckets, missing: Sequence[str], deciding: Deciding) -> None:
    """Give the oldest running clusters to the oldest claims; tell the others what they wait for."""
    clusters = {each.namespace: each for each in snapshot.clusters}
    promised = {each.text("spec", "namespace") for each in snapshot.claims}
    for claim in snapshot.claims:
        cluster = clusters.get(claim.text("spec", "namespace"))
        if cluster is not None and not claim_of(cluster) and not claim.is_deleting and not cluster.is_deleting:
            _claim(cluster, claim, deciding)
    linked = {claim_of(each) for each in snapshot.clusters}
    waiting = [each for each in unassigned(snapshot.claims) if each.name not in linked]
    free = [each for each in buckets.assignable if each.namespace not in promised]
    for claim, cluster in zip(waiting, free, strict=False):
        assigned = Said("Pending", "True", "ClusterAssigned", f"ClusterDeployment {cluster.name} is assigned")
        if deciding.status(claim, with_conditions(claim, [assigned], deciding.now)):
            deciding.announce(claim, "Normal", "ClusterAssigned", assigned.message)
        deciding.do(Replace(claim.edited(cluster.namespace, "spec", "namespace")))
    left = waiting[len(free) :]
    for place, claim in enumerate(left, start=1):
        message = f"position {place} of {len(left)}; {_reason(snapshot, buckets, missing, deciding.now)}"
        deciding.status(claim, with_conditions(claim, [Said("Pending", "True", "NoClusters", message)], deciding.now))


def _claim(cluster: Stored, claim: Stored, deciding: Deciding) -> None:
    """Write the claim into the cluster that was assigned to it; whoever wrote another one before is not replaced."""
    at = ("spec", "clusterPoolRef")
    claimed = cluster.edited(claim.name, *at, "claimName")
    claimed = claimed.edited(write_time(deciding.now), *at, "claimedTimestamp")
    deciding.do(Replace(claimed.edited("Running", "spec", "powerState")))


def _reason(snapshot: PoolSnapshot, buckets: Buckets, missing: Sequence[str], now: datetime) -> str:
    """Return what the first claim in the queue waits for."""
    if buckets.installing or snapshot.creating:
        names = sorted([*(each.name for each in buckets.installing), *snapshot.creating])
        return f"waits for a cluster that is being installed: {', '.join(names)}"
    if buckets.standby:
        return f"waits for a cluster that is not running yet: {', '.join(each.name for each in buckets.standby)}"
    if missing:
        return f"the pool cannot make clusters: {'; '.join(missing)}"
    if is_status(snapshot.pool, "CapacityAvailable", "False"):
        return "the pool has as many clusters as its maxSize allows"
    if snapshot.inventory.names and not snapshot.inventory.candidates(now):
        return "every entry of the pool's inventory that can be used is in use"
    return "the pool has no cluster to give yet"
