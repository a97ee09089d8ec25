"""Runs on one cluster: each does what its plan says and nothing else, and is taken back without a trace."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from garboard.lab.kubeadm import PATCHES
from garboard.model import DEFAULT_VERSION
from garboard.phases.node.records import ANNOTATION, PatchSetContent
from tests.support.lab.clusters import await_api
from tests.support.lab.node_tree import Plan, differing, filled, journaled, named, node_tree, unexplained
from tools.harness.joining import CONFIG, Joining, begun_cluster
from tools.harness.killing import KillPoint
from tools.harness.lab import RUN, LabUnderTest, put
from tools.harness.trees import Tree

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]
_INIT = ("init", "--config", CONFIG, "--upload-certs", "--skip-token-print")
_JOIN = ("join", "--config", CONFIG)
# What stands in the way of an init on a node that lives.
_LIVING = (
    "DirAvailable--var-lib-etcd",
    *(f"Port-{port}" for port in (2379, 2380, 6443, 10250, 10257, 10259)),
    *(f"FileAvailable--etc-kubernetes-manifests-{each}.yaml" for each in (
        "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"
    )),
)  # fmt: skip


@dataclass(frozen=True)
class Shown:
    """A node before a run, and what `--dry-run` said of it."""

    tree: Tree
    plan: Plan


def dry_run(lab: LabUnderTest, garboard: tuple[str, ...], node: str, *words: str) -> Plan:
    plan: Plan = json.loads(lab.exec(node, *garboard, *words, "--dry-run", "-o", "json").stdout)
    return plan


def show(lab: LabUnderTest, garboard: tuple[str, ...], node: str, *words: str) -> Shown:
    """Ask for the plan, which changes nothing."""
    before = node_tree(lab, node)
    plan = dry_run(lab, garboard, node, *words)
    assert differing(before, node_tree(lab, node)) == []
    return Shown(before, plan)


def assert_honest(lab: LabUnderTest, node: str, shown: Shown) -> None:
    """The plan in the journal is the one that was shown; nothing else changed, and what it wrote is as it said."""
    after = node_tree(lab, node)
    assert journaled(lab, node) == shown.plan
    told = named(shown.plan)
    assert [path for path in unexplained(shown.tree, after, filled(shown.plan)) if path not in told] == []
    actions = [step["action"] for step in shown.plan["steps"]]
    removed = {each["path"] for each in actions if each["type"] == "remove-file"}
    modes = [file for each in actions for file in each.get("files", [each] if "mode" in each else [])]
    assert [file["path"] for file in modes if file["path"] not in removed and not _has_mode(after, file)] == []


def _has_mode(tree: Tree, file: Mapping[str, Any]) -> bool:
    return file["path"] in tree and f"{tree[file['path']].mode:04o}" == file["mode"]


@pytest.fixture(scope="module")
def shown_init() -> list[Shown]:
    return []


@pytest.fixture(scope="module")
def cluster(garboard_in_node: tuple[str, ...], shown_init: list[Shown]) -> Iterator[Joining]:
    """A first node by garboard, whose plan was shown before, and a bare control plane and worker beside it."""
    with begun_cluster(
        f"t{RUN}-runs", str(DEFAULT_VERSION), garboard_in_node, control_planes=2, workers=1, init=garboard_in_node,
        before=lambda lab: shown_init.append(show(lab, garboard_in_node, "cp1", *_INIT)),
    ) as made:  # fmt: skip
        yield made


def test_init_does_what_its_plan_says_and_nothing_else(cluster: Joining, shown_init: list[Shown]) -> None:
    assert_honest(cluster.lab, "cp1", shown_init[0])
    again = dry_run(cluster.lab, cluster.garboard, "cp1", *_INIT)
    assert {"issue", "write-file"} <= kinds(shown_init[0].plan)
    assert not kinds(again) & {"issue", "write-file", "make-folder"}
    assert "[Port-6443]" in " ".join(note["text"] for note in again["notes"])


def kinds(plan: Plan) -> set[str]:
    return {step["action"]["type"] for step in plan["steps"]}


def at_work(lab: LabUnderTest, node: str) -> set[str]:
    """Return the pods of a node by the ids of their sandboxes, and the state of its kubelet."""
    pods = lab.exec(node, "crictl", "-r", "unix:///run/containerd/containerd.sock", "pods", "-q").stdout
    return {*pods.split(), lab.exec(node, "systemctl", "is-active", "kubelet", check=False).stdout}


def test_killed_phase_on_a_node_at_work_is_taken_back_and_its_pods_stay(cluster: Joining) -> None:
    lab, phase = cluster.lab, ("init", "phase", "kubelet-start", "--config", CONFIG)
    config = lab.exec("cp1", "cat", "/var/lib/kubelet/config.yaml").stdout
    patch = f"{PATCHES}/kubeletconfiguration0+merge.yaml"
    put(lab, "cp1", patch, "maxPods: 77\n")
    plan, before = dry_run(lab, cluster.garboard, "cp1", *phase), at_work(lab, "cp1")
    assert {"stop-service", "write-file", "start-service"} <= kinds(plan)
    last = KillPoint("end", len(plan["steps"]) - 1)
    assert lab.exec("cp1", *last.of(cluster.garboard), *phase, check=False).returncode != 0
    planned = lab.exec("cp1", *cluster.garboard, "undo", "--dry-run").stdout
    assert "sandboxes" not in planned
    assert "unmount" not in planned
    lab.exec("cp1", *cluster.garboard, "undo")
    lab.exec("cp1", "rm", patch)
    assert "active\n" in before
    assert at_work(lab, "cp1") >= before
    assert lab.exec("cp1", "cat", "/var/lib/kubelet/config.yaml").stdout == config
    assert lab.kubectl("get", "nodes", "-o", "name") == "node/cp1\n"


def test_init_again_is_taken_back_with_the_objects_that_it_has_overwritten(cluster: Joining) -> None:
    lab, again = cluster.lab, (*_INIT, "--ignore-preflight-errors", ",".join(_LIVING))
    stored = ("get", "configmap", "kubeadm-config", "-n", "kube-system", "-o", "jsonpath={.data.ClusterConfiguration}")
    mine = f"{lab.kubectl(*stored)}# mine\n"
    edit = json.dumps({"data": {"ClusterConfiguration": mine}})
    lab.kubectl("patch", "configmap", "kubeadm-config", "-n", "kube-system", "-p", edit)
    before = at_work(lab, "cp1")
    plan = dry_run(lab, cluster.garboard, "cp1", *again)
    names = [step["action"].get("name") for step in plan["steps"]]
    killed = KillPoint("end", names.index("kubeadm-config") + 1)
    ended = lab.exec("cp1", *killed.of(cluster.garboard), *again, check=False)
    assert lab.kubectl(*stored) == mine.removesuffix("# mine\n"), ended.stderr
    lab.exec("cp1", *cluster.garboard, "undo")
    assert lab.kubectl(*stored) == mine
    assert at_work(lab, "cp1") >= before


def test_worker_join_that_was_killed_is_taken_back_and_only_its_node_is_left_to_a_person(cluster: Joining) -> None:
    lab = cluster.lab
    cluster.prepare("worker1")
    put(lab, "worker1", f"{PATCHES}/kubeletconfiguration0+merge.yaml", "maxPods: 77\n")
    shown = show(lab, cluster.garboard, "worker1", *_JOIN)
    last = KillPoint("begin", len(shown.plan["steps"]) - 1)
    assert lab.exec("worker1", *last.of(cluster.garboard), *_JOIN, check=False).returncode != 0
    assert "node/worker1" in lab.kubectl("get", "nodes", "-o", "name")
    told = lab.exec("worker1", *cluster.garboard, "undo").stderr
    assert "this node may not delete Node worker1; please do: kubectl delete node worker1" in told
    assert_as_before(cluster, "worker1", shown)
    lab.kubectl("delete", "node", "worker1")


def test_worker_join_does_what_its_plan_says_and_notes_its_patches(cluster: Joining) -> None:
    lab = cluster.lab
    shown = show(lab, cluster.garboard, "worker1", *_JOIN)
    lab.exec("worker1", *cluster.garboard, *_JOIN)
    assert_honest(lab, "worker1", shown)
    folder = lab.files.node("worker1").upper / PATCHES[1:]
    content = PatchSetContent({each.name: each.read_bytes() for each in folder.iterdir()})
    noted = json.loads(lab.kubectl("get", "node", "worker1", "-o", "json"))["metadata"]["annotations"][ANNOTATION]
    assert noted == f"sha256:{content.digest}"


def test_undo_without_a_quorum_says_so_and_changes_nothing_and_goes_on_after_a_kill(cluster: Joining) -> None:
    """Both members vote when the run is killed; one of them is then down, and the other cannot leave."""
    lab = cluster.lab
    cluster.prepare("cp2")
    shown = show(lab, cluster.garboard, "cp2", *_JOIN)
    last = KillPoint("begin", len(shown.plan["steps"]) - 1)
    assert lab.exec("cp2", *last.of(cluster.garboard), *_JOIN, check=False).returncode != 0
    assert cluster.members() == {"cp1": False, "cp2": False}

    lab.lab("stop", "cp1")
    before = node_tree(lab, "cp2")
    refused = lab.exec("cp2", *cluster.garboard, "undo", check=False)
    assert refused.returncode == 5, refused.stderr
    assert "etcd has no majority of healthy members" in refused.stderr
    assert unexplained(before, node_tree(lab, "cp2"), filled(shown.plan)) == []
    assert lab.exec("cp2", "systemctl", "is-active", "kubelet").stdout == "active\n"
    lab.lab("start", "cp1")
    await_api(lab)

    for index in (1, 2):
        killed = lab.exec("cp2", *KillPoint("end", index).of(cluster.garboard), "undo", check=False)
        assert killed.returncode != 0
        assert "it undoes" in lab.exec("cp2", *cluster.garboard, "status").stdout
    lab.exec("cp2", *cluster.garboard, "undo")
    assert_as_before(cluster, "cp2", shown)
    assert cluster.members() == {"cp1": False}
    assert "node/cp2" not in lab.kubectl("get", "nodes", "-o", "name")


def test_etcd_that_does_not_start_is_told_with_its_log_and_leaves_no_member(cluster: Joining) -> None:
    lab, flag = cluster.lab, "[{op: add, path: /spec/containers/0/command/-, value: --no-such-flag}]"
    cluster.prepare("cp2", "timeouts: {etcdAPICall: 12s}\n")
    put(lab, "cp2", f"{PATCHES}/etcd+json.yaml", f"{flag}\n")
    before = show(lab, cluster.garboard, "cp2", *_JOIN)
    refused = lab.exec("cp2", *cluster.garboard, *_JOIN, "--undo-on-failure", check=False)
    after = node_tree(lab, "cp2")
    lab.exec("cp2", "rm", f"{PATCHES}/etcd+json.yaml")
    assert refused.returncode == 1, refused.stderr
    assert "error[learner]" in refused.stderr
    assert "kubelet: its service is active, its health: ok" in refused.stderr
    assert re.search(r"etcd: container \w+ exited with status 2 .*\n +etcd: its log ends:\n +\| ", refused.stderr)
    assert unexplained(before.tree, after) == []
    assert cluster.members() == {"cp1": False}


def test_control_plane_join_does_what_its_plan_says_and_nothing_else(cluster: Joining) -> None:
    cluster.prepare("cp2")
    shown = show(cluster.lab, cluster.garboard, "cp2", *_JOIN)
    cluster.lab.exec("cp2", *cluster.garboard, *_JOIN)
    assert_honest(cluster.lab, "cp2", shown)


def test_reset_is_the_way_out_of_a_damaged_journal(cluster: Joining) -> None:
    lab = cluster.lab
    lab.exec("worker1", "sh", "-c", "for each in /var/lib/garboard/runs/*-join/journal.jsonl; do echo x >>$each; done")
    # A closed run is history, whatever its journal looks like.
    assert "no run is open" in lab.exec("worker1", *cluster.garboard, "status").stdout
    lab.exec("worker1", "sh", "-c", 'sed -i \'/"type":"closed"/d\' /var/lib/garboard/runs/*-join/journal.jsonl')
    assert "its journal is damaged" in lab.exec("worker1", *cluster.garboard, "status").stdout
    for command in (_JOIN, ("init",)):
        refused = lab.exec("worker1", *cluster.garboard, *command, check=False)
        assert refused.returncode == 4
        assert "error[bad-journal]" in refused.stderr
        assert "garboard reset" in refused.stderr
    lab.exec("worker1", *cluster.garboard, "reset", "--force")
    assert lab.exec("worker1", "systemctl", "is-active", "kubelet", check=False).stdout != "active\n"
    assert "no run is open" in lab.exec("worker1", *cluster.garboard, "status").stdout
    assert lab.exec("worker1", "sh", "-c", "ls -A /etc/kubernetes/pki /var/lib/kubelet").stdout.split() == [
        "/etc/kubernetes/pki:", "/var/lib/kubelet:",
    ]  # fmt: skip


def assert_as_before(cluster: Joining, node: str, shown: Shown) -> None:
    """Nothing that the run made is left: no file, no pod, no service at work."""
    lab = cluster.lab
    assert unexplained(shown.tree, node_tree(lab, node)) == []
    assert lab.exec(node, "systemctl", "is-active", "kubelet", check=False).stdout != "active\n"
    assert lab.exec(node, "crictl", "-r", "unix:///run/containerd/containerd.sock", "pods", "-q").stdout == ""
    assert "no run is open" in lab.exec(node, *cluster.garboard, "status").stdout
