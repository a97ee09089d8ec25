"""A cluster from a snapshot is as good as one that was just made."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.lab.clusters import objects
from tests.support.lab.smoke import smoke
from tools.harness.lab import RUN, LabUnderTest, garboard
from tools.harness.snapshots import ClusterSnapshots

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]
SIZE = ("--control-planes", "1", "--workers", "1")


@pytest.fixture(params=["made", "from a snapshot"])
def cluster(request: pytest.FixtureRequest, cluster_snapshots: ClusterSnapshots) -> Iterator[LabUnderTest]:
    lab = LabUnderTest(f"t{RUN}-smoke")
    try:
        if request.param == "made":
            lab.lab("up", *SIZE)
        elif not cluster_snapshots.up(lab, *SIZE):
            lab.lab("down")
            assert cluster_snapshots.up(lab, *SIZE)
        yield lab
    finally:
        lab.lab("down", check=False)


def test_made_or_from_a_snapshot_it_runs_pods_services_and_dns_and_takes_one_more_node(
    cluster: LabUnderTest, tmp_path: Path
) -> None:
    smoke(cluster, tmp_path, client_on="cp1")
    smoke(cluster, tmp_path, client_on="worker1")
    assert cluster.lab("add-node").stdout == "worker2\n"
    smoke(cluster, tmp_path, client_on="worker2")


def test_several_clusters_of_one_snapshot_run_side_by_side_and_it_keeps_no_mark_of_them(
    one_node: LabUnderTest, labs_made: list[LabUnderTest], cluster_snapshots: ClusterSnapshots
) -> None:
    second, third = (LabUnderTest(f"t{RUN}-side{number}") for number in (1, 2))
    labs_made.extend([second, third])
    size = ("--control-planes", "1", "--workers", "0")
    cluster_snapshots.up(second, *size)
    second.kubectl("create", "configmap", "mark")
    cluster_snapshots.up(third, *size)
    for other in (one_node, third):
        assert "mark" not in {each["metadata"]["name"] for each in objects(other, "configmaps")}
    ports = {json.loads(lab.files.record.read_text())["port"] for lab in (one_node, second, third)}
    assert len(ports) == 3
    for lab in (one_node, second, third):
        assert lab.status()["missing"] == []


def test_cluster_that_was_kept_goes_on_with_what_it_had(one_node: LabUnderTest) -> None:
    one_node.kubectl("create", "configmap", "before")
    name = f"t{RUN}-again"
    try:
        one_node.lab("snapshot", "--as", name)
        assert one_node.status()["missing"] == []
        assert one_node.kubectl("get", "configmap", "before", "-o", "name") == "configmap/before\n"
        one_node.kubectl("create", "configmap", "after")
    finally:
        one_node.kubectl("delete", "configmap", "before", "after", check=False)
        garboard("lab", "snapshot", "--remove", name, check=False)
