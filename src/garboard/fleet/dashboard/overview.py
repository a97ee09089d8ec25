"""The whole of a dashboard as a value, bounded however many objects there are."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

from garboard.fleet.controllers.cache import pool_of
from garboard.fleet.controllers.stored import Stored
from garboard.fleet.dashboard.objects import DashboardObjects
from garboard.fleet.dashboard.rows import (
    PLACES,
    ClaimRow,
    ClusterRow,
    ClusterStage,
    FailureRow,
    PoolRow,
    claim_row,
    cluster_of,
    cluster_row,
    counted,
    failed_at,
    failure_row,
    has_failed,
    is_waiting,
    pool_of_claim,
    pool_row,
    stage_of,
)
from garboard.values import dataclass

FoundT = TypeVar("FoundT")
RowT = TypeVar("RowT")
MOST_POOLS: Final = 200
MOST_CLUSTERS: Final = 200
MOST_CLAIMS: Final = 100
MOST_FAILURES: Final = 25


@dataclass(frozen=True, slots=True)
class Listed(Generic[RowT]):
    """The first rows of a list, and how many there are in all."""

    rows: tuple[RowT, ...]
    total: int

    @property
    def left(self) -> int:
        return self.total - len(self.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardQuery:
    """What a viewer wants to see: of one pool, at one stage, with a text in a name; all of it if none is given.

    `namespace` is what the whole dashboard is limited to.
    """

    namespace: str = ""
    pool: str = ""
    stage: str = ""
    text: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str], namespace: str = "") -> "DashboardQuery":
        return cls(
            namespace=namespace,
            pool=query.get("pool", "")[:300],
            stage=query.get("stage", "")[:30],
            text=query.get("text", "")[:300].strip().lower(),
        )

    def has(self, pool: str, *names: str) -> bool:
        """Say whether something of a pool, known by these names, is to be seen."""
        if self.pool and pool != self.pool:
            return False
        return not self.text or any(self.text in each.lower() for each in (pool, *names))


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """Everything that a page shows; `stages` counts the clusters without regard to the stage that is wanted."""

    shown: DashboardQuery
    stages: tuple[tuple[ClusterStage, int], ...]
    pools: Listed[PoolRow]
    clusters: Listed[ClusterRow]
    claims: Listed[ClaimRow]
    failures: Listed[FailureRow]
    troubles: tuple[str, ...] = ()  # why what is shown may be out of date


def overview_of(objects: DashboardObjects, shown: DashboardQuery, troubles: Iterable[str] = ()) -> Overview:
    """Return what is to be seen of a fleet; equal objects in any order give an equal overview."""
    provisions = {(each.namespace, each.name): each for each in objects.provisions}
    clusters = [each for each in objects.deployments if _is_within(each, shown)]
    staged = [(each, _stage(each, provisions)) for each in clusters]
    by_pool: defaultdict[str, list[ClusterStage]] = defaultdict(list)
    for each, stage in staged:
        by_pool["/".join(pool_of(each))].append(stage)
    claims = [each for each in objects.claims if shown.namespace in ("", each.namespace)]
    waiting = Counter(pool_of_claim(each) for each in claims if is_waiting(each))
    pools = [each for each in objects.pools if shown.namespace in ("", each.namespace)]
    wanted = [(each, stage) for each, stage in staged if _is_wanted(each, shown)]
    return Overview(
        shown=shown,
        stages=counted([stage for _, stage in wanted]),
        pools=_listed(
            (each for each in pools if shown.has(_name(each))),
            MOST_POOLS,
            key=lambda each: (each.namespace, each.name),
            row=lambda each: pool_row(each, by_pool[_name(each)], waiting[_name(each)]),
        ),
        clusters=_listed(
            (each for each in wanted if shown.stage in ("", each[1])),
            MOST_CLUSTERS,
            key=lambda each: (PLACES[each[1]], each[0].namespace, each[0].name),
            row=lambda each: cluster_row(*each),
        ),
        claims=_listed(
            (each for each in claims if _is_claim_wanted(each, shown)),
            MOST_CLAIMS,
            key=lambda each: (not is_waiting(each), each.created, each.namespace, each.name),
            row=claim_row,
        ),
        failures=_failures(objects, staged, shown),
        troubles=tuple(troubles),
    )


def _listed(
    found: Iterable[FoundT], most: int, *, key: Callable[[FoundT], tuple[Any, ...]], row: Callable[[FoundT], RowT]
) -> Listed[RowT]:
    """Return rows of the first; of the others none are made."""
    in_order = sorted(found, key=key)
    return Listed(tuple(map(row, in_order[:most])), len(in_order))


def _failures(
    objects: DashboardObjects, staged: Sequence[tuple[Stored, ClusterStage]], shown: DashboardQuery
) -> Listed[FailureRow]:
    """Return the attempts that have failed, the latest first; only of those that are shown a log is read."""
    clusters = {(each.namespace, each.name): (each, stage) for each, stage in staged}
    found = []
    for attempt in (*objects.provisions, *objects.deprovisions):
        if not has_failed(attempt):
            continue
        cluster, stage = clusters.get((attempt.namespace, cluster_of(attempt)), (None, None))
        pool = _pool(cluster) if cluster is not None else ""
        is_within = shown.namespace in ("", attempt.namespace) or cluster is not None
        if is_within and shown.has(pool, attempt.name, attempt.namespace) and shown.stage in ("", stage):
            found.append((attempt, stage))
    return _listed(
        found,
        MOST_FAILURES,
        key=lambda each: (-failed_at(each[0]).timestamp(), each[0].namespace, each[0].kind, each[0].name),
        row=lambda each: failure_row(*each),
    )


def _stage(cluster: Stored, provisions: Mapping[tuple[str, str], Stored]) -> ClusterStage:
    return stage_of(cluster, provisions.get((cluster.namespace, cluster.text("status", "provisionRef", "name"))))


def _is_within(cluster: Stored, shown: DashboardQuery) -> bool:
    return shown.namespace in ("", cluster.namespace, pool_of(cluster)[0])


def _is_wanted(cluster: Stored, shown: DashboardQuery) -> bool:
    claim = cluster.text("spec", "clusterPoolRef", "claimName")
    infra_id = cluster.text("spec", "clusterMetadata", "infraID")
    return shown.has(_pool(cluster), cluster.name, cluster.namespace, claim, infra_id)


def _is_claim_wanted(claim: Stored, shown: DashboardQuery) -> bool:
    return shown.has(pool_of_claim(claim), claim.name, claim.namespace, claim.text("spec", "namespace"))


def _pool(cluster: Stored) -> str:
    namespace, pool = pool_of(cluster)
    return f"{namespace}/{pool}" if pool else ""


def _name(pool: Stored) -> str:
    return f"{pool.namespace}/{pool.name}"
