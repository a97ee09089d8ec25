"""What is seen of a fleet: stages, pools, claims and failures, in an order that begins with what needs somebody."""

import random
import time
from datetime import UTC, datetime
from typing import Any

import pytest

from garboard.fleet.controllers import Stored
from garboard.fleet.dashboard import SHOWN_KINDS, DashboardObjects, DashboardQuery, fragment, overview_of, shown_of
from garboard.fleet.dashboard.overview import MOST_CLUSTERS, MOST_FAILURES
from garboard.fleet.dashboard.rows import LOG_LINES, ClusterStage, log_of
from tests.support.fleet.dashboard_fleet import (
    CLUSTERS,
    EVERYTHING,
    LOG,
    as_objects,
    claim,
    cluster,
    deprovision,
    object_of,
    pool,
    provision,
    says,
)

WHOLE = as_objects(*EVERYTHING)
ALL = overview_of(WHOLE, DashboardQuery())


def test_every_stage_is_told_apart() -> None:
    assert {row.name: row.stage.value for row in ALL.clusters.rows} == {
        stage.value: stage.value for stage in ClusterStage
    }
    assert ALL.stages == tuple((stage, 1) for stage in ClusterStage)


def test_what_needs_somebody_comes_first() -> None:
    names = [row.name for row in ALL.clusters.rows]
    assert names[:3] == ["failed", "retrying", "waiting"]
    assert [row.name for row in ALL.claims.rows] == ["theirs", "mine"]


@pytest.mark.parametrize(
    ("content", "attempts", "stage"),
    [
        pytest.param(cluster("c"), (), "waiting", id="nobody has looked at it"),
        pytest.param(cluster("c", provision="p"), (), "waiting", id="its attempt is not known yet"),
        pytest.param(cluster("c", says("ProvisionFailed", "True")), (), "retrying", id="between two attempts"),
        pytest.param(cluster("c", provision="p"), (provision("c", "p", "complete"),), "provisioning", id="almost done"),
        pytest.param(cluster("c", installed=True, claim="x", deleting=True), (), "deleting", id="given back"),
        pytest.param(cluster("c", says("ProvisionStopped", "True"), installed=True, power="Running"), (), "ready",
                     id="adopted after a failure"),
    ],
)  # fmt: skip
def test_stage_between_stages(content: dict[str, Any], attempts: tuple[dict[str, Any], ...], stage: str) -> None:
    (row,) = overview_of(as_objects(content, *attempts), DashboardQuery()).clusters.rows
    assert row.stage == stage


def test_pool_says_how_many_are_at_which_stage_and_what_is_wrong() -> None:
    edge, idle = ALL.pools.rows
    assert (edge.name, edge.wanted, edge.most, edge.waiting_claims) == ("edge", 3, 12, 1)
    assert edge.count(ClusterStage.READY) == 1
    assert edge.count(*ClusterStage) == 9  # the installed one is of no pool
    assert [each.type for each in edge.troubles] == ["InventoryValid"]
    assert (idle.name, idle.stages, idle.troubles) == ("idle", (), ())


def test_claim_says_until_when_and_what_it_waits_for() -> None:
    theirs, mine = ALL.claims.rows
    assert theirs.is_waiting
    assert theirs.note.startswith("position 1 of 1")
    assert theirs.expires is None
    assert mine.expires == datetime(2026, 1, 2, 11, 4, 5, tzinfo=UTC)
    assert (mine.cluster, mine.state, mine.note) == ("claimed", "ClusterClaimed", "")


def test_claim_whose_cluster_is_gone_says_so() -> None:
    gone = says("ClusterRunning", "False", "ClusterDeleted", "ClusterDeployment c does not exist any more")
    (row,) = overview_of(
        as_objects(claim("a", says("Pending", "False", "ClusterClaimed"), gone)), DashboardQuery()
    ).claims.rows
    assert row.note == "ClusterDeployment c does not exist any more"


def test_failures_come_with_the_end_of_their_logs_the_latest_first() -> None:
    latest, first = ALL.failures.rows
    assert (latest.reason, latest.attempt, latest.log, latest.is_whole) == ("InstallerFailed", 1, "short", True)
    assert (first.cluster, first.stage) == ("failed", ClusterStage.FAILED)
    assert first.log.splitlines() == LOG.splitlines()[-LOG_LINES:]
    assert not first.is_whole


def test_deprovision_that_has_failed_is_a_failure_until_it_is_completed() -> None:
    failed = says("DeprovisionFailed", "True", "HostsLeft", "host a does not answer")
    stuck, done = deprovision("a", failed), deprovision("b", failed, completed=True)
    (row,) = overview_of(as_objects(stuck, done, cluster("a", deleting=True)), DashboardQuery()).failures.rows
    assert (row.kind, row.cluster, row.reason, row.log) == ("ClusterDeprovision", "a", "HostsLeft", "")
    assert row.stage is ClusterStage.DELETING


def test_lines_of_a_log_that_look_like_secrets_are_left_out() -> None:
    """Logs are stored without secrets; those that Hive itself has stored may have some."""
    log = "begin\nusing password: hunter2hunter2\nend"
    objects = as_objects(provision("c", "c-0", "failed", log=log))
    (row,) = overview_of(objects, DashboardQuery()).failures.rows
    assert "hunter2" not in row.log
    assert row.log.splitlines()[0] == "begin"
    assert "hunter2" not in log_of(objects.provisions[0])


@pytest.mark.parametrize(
    ("query", "clusters", "claims", "failures"),
    [
        pytest.param({}, 10, 2, 2, id="everything"),
        pytest.param({"pool": "fleet/edge"}, 9, 2, 2, id="a pool"),
        pytest.param({"pool": "fleet/none"}, 0, 0, 0, id="a pool that is not there"),
        pytest.param({"stage": "failed"}, 1, 2, 1, id="a stage"),
        pytest.param({"stage": "no such"}, 0, 2, 0, id="a stage that there is not"),
        pytest.param({"text": "STANDBY"}, 1, 0, 0, id="a name in capitals"),
        pytest.param({"text": "x7k2p"}, 1, 0, 0, id="an infraID"),
        pytest.param({"text": "mine"}, 1, 1, 0, id="a claim, with its cluster"),
        pytest.param({"text": "retrying-1"}, 0, 0, 1, id="an attempt"),
    ],
)
def test_page_can_be_narrowed(query: dict[str, str], clusters: int, claims: int, failures: int) -> None:
    found = overview_of(WHOLE, DashboardQuery.of(query))
    assert (found.clusters.total, found.claims.total, found.failures.total) == (clusters, claims, failures)


def test_counts_of_stages_stay_while_one_stage_is_looked_at() -> None:
    assert overview_of(WHOLE, DashboardQuery.of({"stage": "ready"})).stages == ALL.stages


def test_dashboard_of_one_namespace_has_its_pools_and_their_clusters_wherever_they_are() -> None:
    strange = cluster("strange", pool_name="")
    other = object_of("ClusterPool", "elsewhere", "edge", {"size": 1})
    found = overview_of(as_objects(*EVERYTHING, other, strange), DashboardQuery.of({}, "fleet"))
    assert [row.namespace for row in found.pools.rows] == ["fleet", "fleet"]
    assert found.clusters.total == 9
    assert found.failures.total == 2
    assert overview_of(as_objects(*EVERYTHING, other, strange), DashboardQuery.of({}, "elsewhere")).failures.total == 0


def test_order_of_objects_changes_nothing() -> None:
    shuffled = list(EVERYTHING)
    random.Random(3).shuffle(shuffled)
    assert overview_of(as_objects(*shuffled), DashboardQuery()) == ALL


def test_empty_fleet_is_empty() -> None:
    found = overview_of(DashboardObjects(), DashboardQuery())
    assert found.stages == ()
    assert (found.pools.total, found.clusters.total, found.claims.total, found.failures.total) == (0, 0, 0, 0)


@pytest.mark.parametrize("kind", SHOWN_KINDS)
@pytest.mark.parametrize(
    "odd", [None, 7, "text", [1], {"conditions": {"a": 1}}, {"conditions": [None, "x", {"type": []}]}]
)
def test_objects_of_any_shape_are_shown_somehow(kind: str, odd: Any) -> None:
    whole = {"apiVersion": "x", "kind": kind, "metadata": {"name": "a", "namespace": "b"}, "spec": odd, "status": odd}
    nested = {
        **whole,
        "spec": {"clusterPoolRef": odd, "size": odd, "installLog": odd, "stage": odd, "clusterMetadata": odd},
    }
    for each in (whole, nested, {"metadata": odd}):
        fragment(overview_of(as_objects({**each, "kind": kind}), DashboardQuery()))


def test_nothing_is_kept_of_an_object_but_what_is_shown() -> None:
    """Whatever else stands in an object, such as values of the installer's environment, is not even in memory."""
    secret = "s3cr3t-value"
    for content in EVERYTHING:
        spiked = {**content, "data": secret, "stringData": {secret: secret}}
        spiked["spec"] = {
            **content["spec"], "provisioning": {"installerEnv": [{"value": secret}]}, "platform": {"x": secret},
            "clusterMetadata": {"infraID": "i", "adminKubeconfigSecretRef": {"name": secret}, "platform": secret},
        }  # fmt: skip
        spiked["metadata"] = {
            **content["metadata"], "annotations": {"kubectl.kubernetes.io/last-applied-configuration": secret},
            "labels": {"x": secret}, "managedFields": [secret],
        }  # fmt: skip
        spiked["status"] = {**content["status"], "provision": secret}
        assert secret not in str(shown_of(content["kind"], spiked))


def thousands(count: int) -> DashboardObjects:
    """Return a fleet in which everything is as large as it may be."""
    note, log = "x" * 30_000, "l" * 40_000 + "\n" + "x\n" * 4000
    pools = [pool(f"p-{number}", 10, says("InventoryValid", "False", message=note)) for number in range(count // 10)]
    clusters, attempts, claims = [], [], []
    for number in range(count):
        name = f"cluster-{number:05}"
        failed = says("ProvisionFailed", "True", "Failed", note)
        stages = [{"installed": True, "claim": f"claim-{number}"}, {"provision": f"{name}-0"}, {}]
        clusters.append(cluster(name, failed, pool_name=f"p-{number % len(pools)}", **stages[number % 3]))  # type: ignore[arg-type]
        attempts.append(provision(name, f"{name}-0", "failed", log=log))
        claims.append(claim(f"claim-{number}", says("Pending", "True", "NoClusters", note)))
    kept = [Stored(shown_of(each["kind"], each)) for each in (*pools, *claims, *clusters, *attempts)]
    by_kind = (tuple(each for each in kept if each.kind == kind) for kind in SHOWN_KINDS)
    return DashboardObjects(*by_kind)


def test_page_of_thousands_of_clusters_stays_small_and_is_made_soon() -> None:
    objects = thousands(5000)
    began = time.process_time()
    found = overview_of(objects, DashboardQuery())
    html = fragment(found)
    took_s = time.process_time() - began
    assert found.clusters.total == 5000
    assert found.clusters.left == 5000 - MOST_CLUSTERS
    assert len(found.failures.rows) == MOST_FAILURES
    assert sum(number for _, number in found.stages) == 5000
    assert len(html) < 700_000
    assert took_s < 5.0, "it takes a fifth of a second on an idle machine"
    narrowed = overview_of(objects, DashboardQuery.of({"text": "cluster-04321"}))
    assert [row.name for row in narrowed.clusters.rows] == ["cluster-04321"]


def test_clusters_of_the_example_are_named_for_their_stage() -> None:
    assert [each["metadata"]["name"] for each in CLUSTERS] == [stage.value for stage in ClusterStage]
