"""How many clusters a pool has too few or too many, and which are deleted first."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from garboard.fleet.controllers.actions import Deciding, Delete, Replace, ReplaceStatus
from garboard.fleet.controllers.install_configs import Unpatchable, patched_config
from garboard.fleet.controllers.inventory import broken_by_syntax
from garboard.fleet.controllers.marks import CREATING
from garboard.fleet.controllers.pool_snapshot import Buckets, PoolSnapshot, Staleness, unassigned
from garboard.fleet.controllers.stored import Stored, oldest_first
from garboard.fleet.names import derived_name
from garboard.values import dataclass

_UNLIMITED: Final = 2**31


@dataclass(frozen=True, slots=True)
class PoolBudget:
    """How many clusters may be added in all, and how many installations and deletions may begin now."""

    capacity: int
    left: int

    @classmethod
    def of(cls, snapshot: PoolSnapshot, buckets: Buckets) -> "PoolBudget":
        most, at_once = snapshot.pool.number("spec", "maxSize"), snapshot.pool.number("spec", "maxConcurrent")
        creating = len(snapshot.creating)
        capacity = _UNLIMITED if most is None else max(0, most - len(snapshot.clusters) - creating)
        under_way = len(buckets.installing) + len(buckets.deleting) + creating
        return cls(capacity, _UNLIMITED if at_once is None else max(0, at_once - under_way))

    def less(self, begun: int) -> "PoolBudget":
        return replace(self, left=self.left - begun)


def size_pool(
    snapshot: PoolSnapshot,
    buckets: Buckets,
    stale: Staleness | None,
    budget: PoolBudget,
    fresh_names: Sequence[str],
    deciding: Deciding,
) -> None:
    """Add clusters, or delete broken, superfluous or stale ones: one of these in a pass, within the budget.

    What the pool should have is bounded by the inventory that can be used, so that entries which broken and stale
    clusters hold become free. `stale` is None where stale clusters are left alone.
    """
    if budget.left <= 0:
        return
    pool = snapshot.pool
    wanted = (pool.number("spec", "size") or 0) + len(unassigned(snapshot.claims))
    unclaimed = len(buckets.unclaimed) + len(snapshot.creating)
    short = min(wanted - unclaimed, budget.capacity, budget.left, len(fresh_names))
    added = _usable(snapshot, short, deciding)
    if added > 0:
        promise(snapshot, fresh_names[:added], deciding)
    elif buckets.broken:
        deciding.do(*map(Delete, buckets.broken[: budget.left]))
    elif unclaimed > wanted:
        excess = _expendable(buckets)[: min(unclaimed - wanted, budget.left)]
        deciding.do(*map(Delete, excess))
    elif stale is not None and stale.all and not (buckets.installing or buckets.deleting or snapshot.creating):
        deciding.do(Delete(stale.all[0]))


def promise(snapshot: PoolSnapshot, fresh_names: Sequence[str], deciding: Deciding) -> None:
    """Write the names of new clusters into the pool: no other controller creates any beside them."""
    pool = snapshot.pool
    names = (*snapshot.creating, *(derived_name(pool.name, each) for each in fresh_names))
    # The status may be written in the same pass: this write needs the version that comes of that.
    deciding.do(Replace(pool.edited(",".join(names), "metadata", "annotations", CREATING)), needs_fresh=True)


def _usable(snapshot: PoolSnapshot, short: int, deciding: Deciding) -> int:
    """Return how many of the clusters that are missing can be made with the inventory; note entries that cannot."""
    if short <= 0 or not snapshot.inventory.names:
        return max(0, short)
    candidates = snapshot.inventory.candidates(deciding.now)
    reserved = sum(1 for each in snapshot.creating if not _has_entry(snapshot, each))
    usable = 0
    for each in candidates:
        if usable >= short + reserved:
            break
        if is_usable(snapshot, each, deciding):
            usable += 1
    cool_off = snapshot.inventory.cool_off_ends_in(deciding.now)
    if cool_off is not None:
        deciding.look_again(cool_off)
    return max(0, min(short, usable - reserved))


def _has_entry(snapshot: PoolSnapshot, cluster: str) -> bool:
    entries = snapshot.customizations.values()
    return any(each.text("status", "clusterDeploymentRef", "name") == cluster for each in entries)


def is_usable(snapshot: PoolSnapshot, entry: Stored, deciding: Deciding) -> bool:
    """Say whether an install config can be made with an entry; one that cannot be patched is marked as broken."""
    assert snapshot.template is not None, "dependencies are looked at before"
    config = patched_config(snapshot.template, "name", snapshot.pool.text("spec", "baseDomain"), entry)
    if not isinstance(config, Unpatchable):
        return True
    deciding.do(ReplaceStatus(broken_by_syntax(entry, config.message, deciding.now)))
    return False


def _expendable(buckets: Buckets) -> list[Stored]:
    """Return the clusters in the order in which they are given up: the newest installation first, running ones last."""
    newest_first = oldest_first(buckets.installing)[::-1]
    return [*newest_first, *buckets.standby, *buckets.assignable]
