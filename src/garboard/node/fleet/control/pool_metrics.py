"""The clusters of each pool by what they are, as metrics under the names that Hive's dashboards ask for."""

from collections.abc import Callable, Mapping

from garboard.fleet.controllers import ObjectCache, Stored
from garboard.fleet.controllers.pool_snapshot import Buckets, PoolSnapshot, Staleness
from garboard.tunnel.metrics import Metrics
from garboard.values import dataclass

_STATES = {
    "assignable": "Clusters that are installed, run, and can be claimed.",
    "broken": "Clusters whose installation was given up.",
    "claimed": "Clusters that somebody has claimed.",
    "deleting": "Clusters that are being deleted.",
    "installing": "Clusters that are being installed.",
    "stale": "Clusters that nobody has claimed, and that are not as they would be made today.",
    "standby": "Clusters that are installed and do not run.",
    "unclaimed": "Clusters that nobody has claimed.",
}


def pool_metrics(cache: ObjectCache, serves: Callable[[Stored], bool]) -> Metrics:
    """Return the metrics of the pools that a controller serves, as they are now."""
    pools = (each for each in cache.all("ClusterPool") if serves(each))
    snapshots = (PoolSnapshot.gather(cache, each.namespace, each.name) for each in pools)
    counts = {(each.pool.namespace, each.pool.name): counts_of(each) for each in snapshots if each is not None}
    gauges = {name: (about, _PoolGauge(name, counts)) for name, about in _STATES.items()}
    return Metrics("hive_clusterpool_clusterdeployments_", gauges)


def counts_of(snapshot: PoolSnapshot) -> Mapping[str, int]:
    """Return how many clusters of a pool are what."""
    buckets = Buckets.of(snapshot.clusters, snapshot.claims)
    stale = 0 if snapshot.missing() else len(Staleness.of(snapshot, buckets.unclaimed).all)
    return {
        "assignable": len(buckets.assignable),
        "broken": len(buckets.broken),
        "claimed": len(buckets.claimed),
        "deleting": len(buckets.deleting) + len(buckets.marked),
        "installing": len(buckets.installing),
        "stale": stale,
        "standby": len(buckets.standby),
        "unclaimed": len(buckets.unclaimed),
    }


@dataclass(frozen=True, slots=True)
class _PoolGauge:
    """One state: a number for each pool."""

    state: str
    counts: Mapping[tuple[str, str], Mapping[str, int]]

    def lines(self, name: str) -> list[str]:
        # Names of objects have no character that a label would have to escape.
        found = (
            f'{name}{{clusterpool_namespace="{namespace}",clusterpool_name="{pool}"}} {counts[self.state]}'
            for (namespace, pool), counts in sorted(self.counts.items())
        )
        return [f"# TYPE {name} gauge", *found]
