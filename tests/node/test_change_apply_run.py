"""The real plans of a change on a control plane in memory, with a journal: done as a whole, or taken back."""

from typing import Any

import pytest

from garboard.change.edits import FieldEdit
from garboard.change.following import FollowingNode, following_plan, parts_of, plan_following
from garboard.change.outcomes import ChangeInProgress, ChangeRolledBack
from garboard.change.request import FieldEdits
from garboard.change.rollout import Rollout, first_plan
from garboard.engine import Journal, Step
from garboard.errors import GarboardError, StalePlan
from garboard.host.node_machine import NodeMachine
from garboard.kube import KubeClient
from garboard.manifests.kubelet import CONFIG_FILE
from garboard.model.paths import ADMIN_CONF, manifest_path
from garboard.node import renewal
from garboard.node.change_apply_run import run_options
from garboard.node.runs import Runs
from garboard.node.transaction import Transactions
from garboard.node.workflow import LocalNode
from garboard.pki.kubeconfig import Kubeconfig
from tests.support.change.nodes_in_change import FLAG, LIMIT, MAPS, NODES, NodeInChange, target_of
from tests.support.change.rollouts import NOW, begun, rollout
from tests.support.change.snapshots import f1, f2
from tests.support.kube.api_server import FakeApi
from tests.support.node.reporters import MemoryReporter


@pytest.fixture
def cp1(api: FakeApi, client: KubeClient, monkeypatch: pytest.MonkeyPatch, state_dir: object) -> NodeInChange:
    return NodeInChange(f2(is_seen=True), "cp1", api, client, monkeypatch)


def test_a_flag_changes_one_pod_one_map_and_the_record(cp1: NodeInChange) -> None:
    before, started = cp1.files(), cp1.node.pods["kube-apiserver"].container
    cp1.carry_out(first_plan(rollout(cp1.snapshot, FLAG)))
    changed = {path for path, data in cp1.files().items() if before.get(path) != data}
    assert changed == {manifest_path("kube-scheduler")}
    assert "--v=9" in cp1.node.pods["kube-scheduler"].manifest.decode()
    assert cp1.node.pods["kube-apiserver"].container == started
    assert "name: v" in cp1.stored("kubeadm-config")["ClusterConfiguration"]
    assert '"state":"rolling"' in target_of(cp1)
    annotations = cp1.api.objects[f"{NODES}/cp1"]["metadata"]["annotations"]
    assert annotations["garboard.dev/change"].startswith("1:")
    assert ":done:" in annotations["garboard.dev/change"]
    assert cp1.node.traps == []


def test_a_flag_that_ends_the_scheduler_is_taken_back_with_all_that_was_recorded(cp1: NodeInChange) -> None:
    before, objects = cp1.files(), cp1.objects()
    cp1.node.breaks = "--v=9"
    with pytest.raises(ChangeRolledBack, match="kube-scheduler: no container of it runs") as failed:
        cp1.carry_out(first_plan(rollout(cp1.snapshot, FLAG)))
    assert failed.value.exit_code == 13
    assert cp1.files() == before
    assert cp1.objects() == objects
    assert cp1.node.pods["kube-scheduler"].is_running


def test_a_kubelet_that_is_not_well_starts_again_as_it_was(cp1: NodeInChange) -> None:
    before, objects = cp1.files(), cp1.objects()
    cp1.node.refuses = "250"
    with pytest.raises(ChangeRolledBack, match="a healthy kubelet"):
        cp1.carry_out(first_plan(rollout(cp1.snapshot, LIMIT)))
    assert cp1.node.limits == ["250", ""]
    assert (cp1.files(), cp1.objects()) == (before, objects)


def test_a_config_map_that_moved_meanwhile_takes_the_node_back(cp1: NodeInChange) -> None:
    """S19, in the middle: the first node is done, and what is shared was changed by somebody else."""
    before = cp1.files()
    plan = first_plan(rollout(cp1.snapshot, LIMIT))
    cp1.api.objects[f"{MAPS}/kubelet-config"] = {"metadata": {"name": "kubelet-config"}, "data": {"kubelet": "moved"}}
    cp1.api.refuse("PUT", f"{MAPS}/kubelet-config", 409, "Conflict", "changed in between")
    with pytest.raises(ChangeRolledBack, match="kubelet-config has changed since"):
        cp1.carry_out(plan)
    assert cp1.files() == before
    assert cp1.stored("kubelet-config") == {"kubelet": "moved"}
    assert cp1.stored("garboard-change") is None


def test_a_file_that_moved_meanwhile_is_not_touched(cp1: NodeInChange) -> None:
    plan, objects = first_plan(rollout(cp1.snapshot, LIMIT)), cp1.objects()
    cp1.node.machine.files[CONFIG_FILE] = (0o600, b"maxPods: 7\n")
    with pytest.raises(StalePlan):
        cp1.carry_out(plan)
    assert cp1.objects() == objects
    assert cp1.node.limits == []


def test_a_lease_that_somebody_holds_is_told_as_such(cp1: NodeInChange) -> None:
    cp1.leases.holder = "cp9"
    objects = cp1.objects()
    with pytest.raises(ChangeInProgress, match="cp9") as refused:
        cp1.carry_out(first_plan(rollout(cp1.snapshot, FLAG)))
    assert refused.value.exit_code == 15
    assert cp1.objects() == objects


def test_of_two_changes_begun_at_once_the_second_writes_nothing(cp1: NodeInChange) -> None:
    """Both were planned before there was a target; revisions are immutable."""
    first, second = (first_plan(rollout(cp1.snapshot, each)) for each in (LIMIT, FLAG))
    cp1.carry_out(first)
    before, objects = cp1.files(), cp1.objects()
    path = f"{MAPS}/garboard-revision-1"
    cp1.api.refuse("PUT", path, 422, "Invalid", "data: field is immutable when `immutable` is set")
    with pytest.raises(ChangeRolledBack, match="immutable"):
        cp1.carry_out(second)
    assert (cp1.files(), cp1.objects()) == (before, objects)


def follow(node: NodeInChange, found: Rollout, **more: Any) -> FollowingNode:
    record = begun(found)
    assert record.target is not None
    plan = plan_following(node.snapshot, record, record.target, node.name)
    return FollowingNode(
        name=node.name, is_control_plane=True, target=record.target, snapshot=node.snapshot, now=NOW,
        parts=parts_of(plan, node.name), **more,
    )  # fmt: skip


def test_a_node_that_follows_does_its_part_and_writes_no_config_map(
    api: FakeApi, client: KubeClient, monkeypatch: pytest.MonkeyPatch, state_dir: object
) -> None:
    node = NodeInChange(f2(is_seen=True), "cp2", api, client, monkeypatch)
    maps = {path: each for path, each in node.objects().items() if path.startswith(MAPS)}
    node.carry_out(following_plan(follow(node, rollout(node.snapshot, FLAG))))
    assert "--v=9" in node.node.pods["kube-scheduler"].manifest.decode()
    assert {path: each for path, each in node.objects().items() if path.startswith(MAPS)} == maps
    assert ":done:" in api.objects[f"{NODES}/cp2"]["metadata"]["annotations"]["garboard.dev/change"]


def test_a_cluster_of_one_control_plane_is_committed_at_once(
    api: FakeApi, client: KubeClient, monkeypatch: pytest.MonkeyPatch, state_dir: object
) -> None:
    node = NodeInChange(f1(is_seen=True), "cp1", api, client, monkeypatch)
    node.carry_out(first_plan(rollout(node.snapshot, FLAG)))
    assert '"state":"committed"' in target_of(node)


def test_an_error_before_anything_begins_is_told_as_it_is(cp1: NodeInChange) -> None:
    plan = first_plan(rollout(cp1.snapshot, FLAG, here="cp2"))
    with pytest.raises(GarboardError) as refused:
        cp1.carry_out(plan)
    assert refused.value.error_class == "wrong-node"


class Killed(BaseException):
    """The process is gone; nothing of it runs any more."""


def kill_at(monkeypatch: pytest.MonkeyPatch, index: int) -> None:
    """Have the run end once the begin of a step is on disk."""
    begin = Journal.begin

    def killing(journal: Journal, number: int, step: Step) -> None:
        begin(journal, number, step)
        if number == index:
            raise Killed

    monkeypatch.setattr(Journal, "begin", killing)


BOTH = FieldEdits(edits=tuple(map(FieldEdit.parse, (FLAG, LIMIT))))


def killed(cp1: NodeInChange, index: int) -> None:
    plan = first_plan(rollout(cp1.snapshot, BOTH))
    with pytest.MonkeyPatch.context() as patched:
        kill_at(patched, index)
        with pytest.raises(Killed):
            cp1.carry_out(plan)


STEPS = len(first_plan(rollout(f2(is_seen=True), BOTH)).steps)


@pytest.mark.parametrize("index", range(STEPS))
def test_a_change_that_is_killed_is_resumed_to_its_end(cp1: NodeInChange, index: int) -> None:
    killed(cp1, index)
    assert Transactions(Runs(NodeMachine(None)), MemoryReporter()).resume(run_options("change resume"))
    assert "--v=9" in cp1.node.pods["kube-scheduler"].manifest.decode()
    assert b"maxPods: 250" in cp1.files()[CONFIG_FILE]
    assert "name: v" in cp1.stored("kubeadm-config")["ClusterConfiguration"]
    assert "maxPods: 250" in cp1.stored("kubelet-config")["kubelet"]
    assert '"state":"rolling"' in target_of(cp1)
    assert cp1.node.traps == []


@pytest.mark.parametrize("index", range(STEPS))
def test_a_change_that_is_killed_is_taken_back_as_a_whole(cp1: NodeInChange, index: int) -> None:
    before, objects = cp1.files(), cp1.objects()
    killed(cp1, index)
    assert Transactions(Runs(NodeMachine(None)), MemoryReporter()).undo(run_options("undo"))
    assert cp1.files() == before
    assert cp1.objects() == objects
    assert cp1.node.is_kubelet_running
    cp1.node.sleep(60)
    assert all(pod.is_running for pod in cp1.node.pods.values())
    assert "--v=9" not in cp1.node.pods["kube-scheduler"].manifest.decode()
    assert cp1.node.traps == []


def test_no_certificate_is_renewed_on_a_node_in_the_middle_of_a_change(
    cp1: NodeInChange, kubeconfig: Kubeconfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = NodeMachine(None)
    local = LocalNode(machine, MemoryReporter())
    monkeypatch.setattr(NodeMachine, "read", lambda _self, path: kubeconfig.to_bytes() if path == ADMIN_CONF else None)
    renewal._refuse_while_changing(local)
    asked = len(cp1.api.asked)
    assert asked == 0, "a node that was never changed asks nobody"
    cp1.carry_out(first_plan(rollout(cp1.snapshot, FLAG)))
    cp1.api.objects.pop(NODES)
    with pytest.raises(ChangeInProgress, match=r"revision 1 .*is rolling"):
        renewal._refuse_while_changing(local)
    cp1.api.objects.pop(f"{MAPS}/garboard-change")
    renewal._refuse_while_changing(local)
