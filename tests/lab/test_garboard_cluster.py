"""Three control planes and two workers, all of them made by garboard, at every minor."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from garboard.model import SUPPORTED_VERSIONS
from tests.support.lab.clusters import objects
from tests.support.lab.smoke import smoke
from tools.harness.lab import RUN, LabUnderTest

pytestmark = [pytest.mark.lab, pytest.mark.timeout(900), pytest.mark.sampled(2, by="cluster")]


@pytest.fixture(scope="module", params=SUPPORTED_VERSIONS, ids=str)
def cluster(request: pytest.FixtureRequest) -> Iterator[LabUnderTest]:
    lab = LabUnderTest(f"t{RUN}-own-{request.param.minor}")
    size = ("--control-planes", "3", "--workers", "2")
    lab.lab("up", "--by", "garboard", *size, "--kubernetes-version", str(request.param))
    yield lab
    lab.lab("down")


def test_every_node_is_ready_and_every_pod_runs(cluster: LabUnderTest) -> None:
    assert cluster.status()["missing"] == []
    nodes = {each["metadata"]["name"]: each for each in objects(cluster, "nodes")}
    assert sorted(nodes) == ["cp1", "cp2", "cp3", "worker1", "worker2"]
    role = "node-role.kubernetes.io/control-plane"
    assert [name for name, each in sorted(nodes.items()) if role in each["metadata"]["labels"]] == ["cp1", "cp2", "cp3"]
    pods = objects(cluster, "pods", "-n", "kube-system")
    assert all(each["status"]["phase"] == "Running" for each in pods)


def test_etcd_has_three_voting_members(cluster: LabUnderTest) -> None:
    folder = "/etc/kubernetes/pki/etcd"
    files = ("--cacert", f"{folder}/ca.crt", "--cert", f"{folder}/peer.crt", "--key", f"{folder}/peer.key")
    listed = cluster.exec(
        "cp1", "etcdctl", "--endpoints", "https://127.0.0.1:2379", *files, "member", "list", "-w", "json"
    )
    members = json.loads(listed.stdout)["members"]
    assert sorted(each["name"] for each in members) == ["cp1", "cp2", "cp3"]
    assert not any(each.get("isLearner") for each in members)


def test_the_cluster_works(cluster: LabUnderTest, tmp_path: Path) -> None:
    smoke(cluster, tmp_path, "cp2")


def test_a_change_sets_out_from_what_init_has_recorded(cluster: LabUnderTest) -> None:
    """The patches with which the other nodes have joined are found beside it, and nothing that others have changed."""
    cluster.exec("cp1", "garboard", "change", "apply", "--set", "scheduler.extraArgs[v]=1", "--yes", check=False)
    told = json.loads(cluster.exec("cp1", "garboard", "change", "history", "-o", "json").stdout)
    made, joined, changed = sorted(told["revisions"], key=lambda each: each["revision"])
    assert (made["revision"], made["message"], made["request"]) == (0, "the cluster was made", "init")
    assert joined["message"] == "what was found: the patches of nodes that have joined, left or been upgraded"
    assert made["created"] <= joined["created"] == changed["created"]
    assert [made["parent"], joined["parent"], changed["parent"], told["current"]] == [None, 0, 1, 2]
    for node in ("cp2", "cp3"):
        cluster.exec(node, "garboard", "change", "node", "--yes")
    status = json.loads(cluster.exec("cp1", "garboard", "change", "status", "-o", "json").stdout)
    assert [each["state"] for each in status["nodes"]] == ["done"] * 3


def test_no_run_is_left_open_on_any_node(cluster: LabUnderTest) -> None:
    for node in ("cp1", "cp2", "cp3", "worker1", "worker2"):
        assert json.loads(cluster.exec(node, "garboard", "status", "-o", "json").stdout)["runs"] == []
