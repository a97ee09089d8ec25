"""How many clusters a pool adds or deletes, and which: the rules of Hive's own tests, each by itself."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from garboard.fleet.controllers import Delete, Replace, Stored
from garboard.fleet.controllers.actions import Deciding
from garboard.fleet.controllers.marks import CREATING, REMOVE, SPEC_HASH
from garboard.fleet.controllers.pool_sizing import PoolBudget, size_pool
from garboard.fleet.controllers.pool_snapshot import Buckets, PoolSnapshot, Staleness
from tests.support.fleet.model_fleet import CONFIG, encoded

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
STOPPED = {"type": "ProvisionStopped", "status": "True", "reason": "InstallAttemptsLimitReached"}
STATES: dict[str, Any] = {
    "installing": {},
    "broken": {"status": {"conditions": [STOPPED]}},
    "standby": {"spec": {"installed": True}},
    "running": {"spec": {"installed": True}, "status": {"powerState": "Running"}},
    "claimed": {"spec": {"installed": True, "clusterPoolRef": {"claimName": "c"}}, "status": {"powerState": "Running"}},
    "deleting": {"metadata": {"deletionTimestamp": NOW.isoformat()}},
    "marked": {"metadata": {"annotations": {REMOVE: "true"}}},
}


def cluster(number: int, state: str) -> Stored:
    """Return a cluster of a state; one with a lower number is older. A state may have a hash behind it."""
    state, _, version = state.partition("=")
    content = STATES[state]
    metadata: dict[str, Any] = {
        "name": f"{state}{number}", "namespace": f"{state}{number}", "uid": str(number),
        "creationTimestamp": (NOW - timedelta(hours=1) + timedelta(minutes=number)).isoformat(),
        **content.get("metadata", {}),
    }  # fmt: skip
    if version:
        metadata["annotations"] = {SPEC_HASH: version}
    return Stored({"kind": "ClusterDeployment", **content, "metadata": metadata})


def snapshot(states: str, claims: int = 0, **spec: Any) -> PoolSnapshot:
    made = tuple(cluster(number, state) for number, state in enumerate(states.split()))
    template = Stored({"kind": "Secret", "data": {"install-config.yaml": encoded(CONFIG)}})
    waiting = [
        Stored({"kind": "ClusterClaim", "metadata": {"name": f"c{number}"}, "status": {"conditions": [
            {"type": "Pending", "status": "True", "reason": "NoClusters"},
        ]}})
        for number in range(claims)
    ]  # fmt: skip
    content: dict[str, Any] = {"installConfigSecretTemplateRef": {"name": "t"}, **spec}
    pool = Stored({"kind": "ClusterPool", "metadata": {"name": "edge", "namespace": "fleet"}, "spec": content})
    return PoolSnapshot(
        pool=pool, clusters=made, claims=tuple(waiting), customizations={}, secrets={"t": template}, image_set=None,
        namespaces={}, admin_bindings=(), admin_copies={},
    )  # fmt: skip


def sized(found: PoolSnapshot, *, replaces_stale: bool = False) -> tuple[int, list[str]]:
    """Return how many clusters are added, and which are deleted, in one pass."""
    deciding, buckets = Deciding(NOW), Buckets.of(found.clusters, found.claims)
    stale = Staleness.of(found, buckets.unclaimed) if replaces_stale else None
    size_pool(found, buckets, stale, PoolBudget.of(found, buckets), [f"n{each}" for each in range(10)], deciding)
    actions = deciding.decision().actions
    promised = [each.new.annotation(CREATING) for each in actions if isinstance(each, Replace)]
    added = len(promised[0].split(",")) if promised else 0
    return added, [each.old.name for each in actions if isinstance(each, Delete)]


@pytest.mark.parametrize(
    ("states", "spec", "expected"),
    [
        pytest.param("", {"size": 3}, 3, id="as many as are missing"),
        pytest.param("running installing", {"size": 3}, 1, id="those being installed count"),
        pytest.param("broken", {"size": 2}, 1, id="broken ones count, until they are deleted"),
        pytest.param("claimed claimed", {"size": 2}, 2, id="claimed ones are beyond the size"),
        pytest.param("claimed claimed", {"size": 2, "maxSize": 3}, 1, id="and count against maxSize"),
        pytest.param("claimed claimed", {"size": 2, "maxConcurrent": 1}, 1, id="and not against maxConcurrent"),
        pytest.param("deleting deleting", {"size": 2, "maxSize": 3}, 1, id="those being deleted count for maxSize"),
        pytest.param("deleting", {"size": 2, "maxConcurrent": 2}, 1, id="and for maxConcurrent"),
        pytest.param("deleting installing", {"size": 3, "maxConcurrent": 2}, 0, id="together with installations"),
        pytest.param("deleting", {"size": 3, "maxConcurrent": 3, "maxSize": 2}, 1, id="the lower of both bounds"),
        pytest.param("running running", {"size": 3, "maxSize": 2}, 0, id="at maxSize"),
        pytest.param("running running running", {"size": 3, "maxSize": 2}, 0, id="above maxSize"),
        pytest.param("marked", {"size": 1}, 1, id="one that was given back is none of the size"),
    ],
)
def test_clusters_are_added_within_bounds(states: str, spec: dict[str, Any], expected: int) -> None:
    assert sized(snapshot(states, **spec)) == (expected, [])


def test_claims_that_wait_have_clusters_made_beyond_the_size() -> None:
    assert sized(snapshot("running", claims=2, size=1)) == (2, [])
    assert sized(snapshot("", claims=2, size=0)) == (2, [])
    assert sized(snapshot("running running", claims=1, size=1)) == (0, [])


@pytest.mark.parametrize(
    ("states", "spec", "expected"),
    [
        pytest.param("running installing running installing", {"size": 2}, ["installing3", "installing1"],
                     id="installing ones first, the newest of them first"),
        pytest.param("running standby running standby", {"size": 1}, ["standby1", "standby3", "running0"],
                     id="then those that do not run, then the others, oldest first"),
        pytest.param("running running running", {"size": 0, "maxConcurrent": 2}, ["running0", "running1"],
                     id="as many as may be deleted at once"),
        pytest.param("running running deleting", {"size": 0, "maxConcurrent": 1}, [], id="none beside others"),
        pytest.param("running broken running broken", {"size": 1}, ["broken1", "broken3"],
                     id="broken ones before any that works"),
        pytest.param("running broken", {"size": 2}, ["broken1"], id="broken ones also where none is too many"),
        pytest.param("running broken", {"size": 3, "maxSize": 2}, ["broken1"], id="broken ones at maxSize"),
        pytest.param("claimed claimed running", {"size": 0}, ["running2"], id="never a claimed one"),
    ],
)  # fmt: skip
def test_clusters_are_deleted_in_their_order(states: str, spec: dict[str, Any], expected: list[str]) -> None:
    assert sized(snapshot(states, **spec)) == (0, expected)


def test_broken_clusters_are_deleted_after_others_were_added() -> None:
    assert sized(snapshot("broken running", size=3)) == (1, [])


@pytest.mark.parametrize(
    ("states", "size", "expected"),
    [
        pytest.param("running=1-old running=1-older running", 3, ["running2"], id="of unknown age first"),
        pytest.param("running=1-old running=1-older", 2, ["running0"], id="the oldest, one at a time"),
        pytest.param("running=1-old running=1-older", 3, [], id="none while some are missing"),
        pytest.param("running=1-old installing", 2, [], id="none while another is being installed"),
        pytest.param("running=1-old deleting", 1, [], id="none while another is being deleted"),
        pytest.param("running=0-old", 1, ["running0"], id="a hash of another format is of unknown age"),
        pytest.param("claimed running=1-old", 1, ["running1"], id="claimed ones are nobody's business"),
    ],
)
def test_stale_clusters_are_replaced_one_at_a_time(states: str, size: int, expected: list[str]) -> None:
    added, deleted = sized(snapshot(states, size=size), replaces_stale=True)
    assert deleted == expected
    assert not added or not deleted


def test_stale_clusters_stay_unless_the_pool_says_otherwise() -> None:
    assert sized(snapshot("running=1-old running", size=2)) == (0, [])
