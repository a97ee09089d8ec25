"""Clusters of v1.36.4 that kubeadm made, with patches, raised to v1.37.1 by garboard: short outages, true ways back."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tools.harness.api_load import ApiLoad
from tools.harness.lab import RUN, LabUnderTest
from tools.harness.snapshots import ClusterSnapshots
from tools.harness.upgrading import CRASHING, FORMER, RELEASES, TARGET, UNREADY, Upgrading

# It measures how long nobody answers.
pytestmark = [pytest.mark.lab, pytest.mark.alone, pytest.mark.timeout(1500)]
GIVEN = Path(__file__).parents[1] / "vectors/upgrade/patches"
CONTROL_PLANES, WORKER = ("cp1", "cp2", "cp3"), "worker1"


@dataclass(frozen=True)
class Failed:
    """An upgrade of a node that failed: what the node was before and after it, and what was told."""

    told: str
    status: int
    before: dict[str, str]
    after: dict[str, str]
    tags: dict[str, str]
    is_ready: bool


@dataclass(frozen=True)
class Story:
    """A cluster on its way up, with a node that fails at its beginning and at its end."""

    upgrading: Upgrading
    first_failed: Failed
    last_failed: Failed
    loads: tuple[ApiLoad, ...]  # before and after the failure of the last node
    shown: str  # by `apply`


@pytest.fixture(scope="module")
def story(cluster_snapshots: ClusterSnapshots, garboard_in_node: tuple[str, ...]) -> Iterator[Story]:
    lab = LabUnderTest(f"t{RUN}-up")
    try:
        cluster_snapshots.up(lab, *RELEASES, "--patches", str(GIVEN))
        nodes = Upgrading(lab, garboard_in_node)
        first_failed = failing(nodes, "cp1", CRASHING, "apply", "--yes")
        with ApiLoad(nodes.kubeconfig) as first:
            shown = nodes.apply("cp1").stdout
            nodes.follow("cp2")
        last_failed = failing(nodes, "cp3", UNREADY, "node")
        with ApiLoad(nodes.kubeconfig) as last:
            nodes.follow("cp3", WORKER)
        yield Story(nodes, first_failed, last_failed, (first, last), shown)
    finally:
        lab.lab("down", check=False)


def failing(nodes: Upgrading, node: str, fault: object, *words: str) -> Failed:
    before = nodes.files(node)
    done = nodes.fail(node, fault, *words)  # type: ignore[arg-type]
    return Failed(done.stderr, done.returncode, before, nodes.files(node), nodes.tags(node), nodes.is_ready(node))


def test_no_request_fails_and_nobody_waits_long(story: Story) -> None:
    print(*story.loads, sep="\n")
    assert all(len(each.asked) > 300 for each in story.loads)
    assert [each.failed for each in story.loads] == [[], []]
    assert all(each.longest_gap_s <= each.gap_limit_s for each in story.loads)


def test_every_component_is_the_targets(story: Story) -> None:
    tags = [story.upgrading.tags(node) for node in CONTROL_PLANES]
    assert tags[0] == tags[1] == tags[2]
    assert {tags[0][name] for name in tags[0] if name != "etcd"} == {TARGET}
    assert story.upgrading.cluster_version("cp1").startswith("3.7.")
    assert all(map(story.upgrading.is_ready, CONTROL_PLANES))
    images = story.upgrading.lab.kubectl("get", "ds,deploy", "-n", "kube-system", "-o", "jsonpath={..image}")
    assert f"kube-proxy:{TARGET}" in images


def test_patches_are_kept_and_recorded(story: Story) -> None:
    for node in CONTROL_PLANES:
        assert "example.com/owner: platform" in story.upgrading.manifest(node, "kube-apiserver")
        assert "--concurrent-gc-syncs=15" in story.upgrading.manifest(node, "kube-controller-manager")
        assert "example.com/backup: nightly" in story.upgrading.manifest(node, "etcd")
    assert {story.upgrading.kubelet_limit(node) for node in (*CONTROL_PLANES, WORKER)} == {"maxPods: 99"}
    record = story.upgrading.lab.kubectl("get", "cm", "garboard-patches", "-n", "kube-system", "-o", "jsonpath={.data}")
    assert all(f'"node.{node}"' in record for node in CONTROL_PLANES)


def test_kubelets_of_control_planes_use_their_own_api_server(story: Story) -> None:
    servers = {node: story.upgrading.server_of_kubelet(node) for node in CONTROL_PLANES}
    assert servers == {node: f"https://{story.upgrading.address(node)}:6443" for node in CONTROL_PLANES}
    assert story.upgrading.address(WORKER) not in story.upgrading.server_of_kubelet(WORKER)


def test_the_commands_for_the_other_nodes_are_told(story: Story) -> None:
    lines = [line.split() for line in story.shown.splitlines() if line.startswith("  on ")]
    assert [line[1].rstrip(":") for line in lines] == ["cp2", "cp3", WORKER]


def test_snapshot_of_etcd_was_saved_for_its_owner_alone(story: Story) -> None:
    listed = story.upgrading.lab.exec("cp1", "stat", "-c", "%a %n", "-t", "/var/lib/garboard/etcd-snapshots").stdout
    assert listed.startswith("700 ")
    files = story.upgrading.lab.exec("cp1", "sh", "-c", "stat -c '%a %n' /var/lib/garboard/etcd-snapshots/*").stdout
    assert [line.split()[0] for line in files.splitlines()] == ["600", "600"], "also that of the upgrade that failed"
    assert FORMER in files


def test_first_node_that_failed_was_taken_back_with_etcd(story: Story) -> None:
    failed = story.first_failed
    assert failed.status == 1
    assert CRASHING.cause in failed.told
    assert "what the run had done was undone" in failed.told
    assert failed.after == failed.before
    assert failed.tags["etcd"].startswith("3.6.")
    assert {failed.tags[name] for name in failed.tags if name != "etcd"} == {FORMER}
    assert failed.is_ready


def test_last_node_that_failed_kept_etcd_and_the_others_were_taken_back(story: Story) -> None:
    failed = story.last_failed
    assert failed.status == 1
    assert UNREADY.cause in failed.told
    assert "etcd.yaml stays as the run wrote it: there is a cluster version of etcd above 3.6" in failed.told
    changed = {path for path in failed.before if failed.after.get(path) != failed.before[path]}
    assert changed == {"/etc/kubernetes/manifests/etcd.yaml"}
    assert failed.tags["etcd"].startswith("3.7.")
    assert {failed.tags[name] for name in failed.tags if name != "etcd"} == {FORMER}
    assert failed.is_ready


def test_the_record_says_what_the_cluster_was_and_is(story: Story) -> None:
    """One revision for all nodes, and none for the upgrades that were taken back."""
    history = json.loads(story.upgrading.run("cp1", "change", "history", "-o", "json").stdout)
    newest, first = history["revisions"]
    assert (first["revision"], newest["revision"], history["current"]) == (0, 1, 1)
    assert (first["kubernetesVersion"], newest["kubernetesVersion"]) == (FORMER, TARGET)
    assert newest["message"] == f"upgraded from {FORMER} to {TARGET}"
    status = json.loads(story.upgrading.run("cp1", "change", "status", "-o", "json").stdout)
    assert (status["state"], status["nodes"]) == ("committed", [])
    wanted = ("garboard-revision-1", "-n", "kube-system", "-o", "jsonpath={.data.revision}")
    stored = story.upgrading.lab.kubectl("get", "cm", *wanted)
    for name in ("kubeadm-config", "kubelet-config", "kube-proxy"):
        data = json.loads(story.upgrading.lab.kubectl("get", "cm", name, "-n", "kube-system", "-o", "json"))["data"]
        assert json.loads(stored)["documents"][name] in data.values()


def test_the_same_version_again_has_nothing_to_do(story: Story) -> None:
    done = story.upgrading.run("cp1", "upgrade", "apply", TARGET, "--yes")
    assert "there is nothing to do" in done.stderr
