"""Hand edits of a control plane in memory are recorded without touching it, or taken out as a whole."""

from collections.abc import Callable

import pytest

from garboard.change.adopting import adoption_of
from garboard.change.correcting import correction_of
from garboard.change.drift_names import DriftNames
from garboard.change.drifting import drift_of_files
from garboard.change.following import FollowingNode, following_plan, parts_of, plan_following
from garboard.change.history import asked_back
from garboard.change.outcomes import ChangeRolledBack
from garboard.change.request import DriftAdoption, DriftCorrection
from garboard.change.rollout import first_plan
from garboard.change.snapshot import ClusterSnapshot
from garboard.kube import KubeClient
from garboard.manifests.kubelet import CONFIG_FILE
from garboard.model.paths import manifest_path
from garboard.node.change_apply import ApplyRequest, is_needless
from tests.support.change.edited_nodes import container, edited, with_flag, with_kubelet_line
from tests.support.change.nodes_in_change import NODES, NodeInChange, target_of
from tests.support.change.rollouts import NOW, begun, rollout
from tests.support.change.snapshots import f1, f2
from tests.support.kube.api_server import FakeApi

SCHEDULER = "kube-scheduler"
MakeNode = Callable[[ClusterSnapshot, str], NodeInChange]


@pytest.fixture
def node_of(
    api: FakeApi, client: KubeClient, monkeypatch: pytest.MonkeyPatch, state_dir: object
) -> Callable[[ClusterSnapshot, str], NodeInChange]:
    return lambda snapshot, name: NodeInChange(snapshot, name, api, client, monkeypatch)


def typed_in() -> ClusterSnapshot:
    """Return three control planes whose schedulers, and the kubelet of cp1, somebody has edited."""
    return with_kubelet_line(edited(SCHEDULER, with_flag("--v=9"), node="*", make=f2), "maxPods: 250", "cp1")


def adoption(snapshot: ClusterSnapshot) -> DriftAdoption:
    return adoption_of(snapshot, drift_of_files, DriftNames())


def correction(snapshot: ClusterSnapshot) -> DriftCorrection:
    return correction_of(drift_of_files(snapshot), DriftNames())


def test_adopting_writes_the_record_and_no_file(node_of: MakeNode) -> None:
    cp1 = node_of(typed_in(), "cp1")
    before, started = cp1.files(), {name: pod.container for name, pod in cp1.node.pods.items()}
    cp1.carry_out(first_plan(rollout(cp1.snapshot, adoption(cp1.snapshot))))
    assert cp1.files() == before
    assert {name: pod.container for name, pod in cp1.node.pods.items()} == started
    assert cp1.node.limits == []
    assert "- name: v" in cp1.stored("kubeadm-config")["ClusterConfiguration"]
    record = cp1.stored("garboard-patches")
    assert set(record) == {"node.cp1", f"set.{record['node.cp1']}"}
    assert '"state":"committed"' in target_of(cp1)
    assert any("garboard:patches" in path for path in cp1.api.objects), "nodes have to read their patches"
    assert cp1.node.traps == []


def test_correcting_takes_out_what_was_edited_and_nothing_else(node_of: MakeNode) -> None:
    cp1 = node_of(typed_in(), "cp1")
    before, started = cp1.files(), cp1.node.pods["kube-apiserver"].container
    maps = cp1.stored("kubeadm-config")
    cp1.carry_out(first_plan(rollout(cp1.snapshot, correction(cp1.snapshot))))
    changed = {path for path, data in cp1.files().items() if before.get(path) != data}
    assert changed == {manifest_path(SCHEDULER), CONFIG_FILE}
    assert cp1.files()[manifest_path(SCHEDULER)] == _declared(manifest_path(SCHEDULER))
    assert cp1.node.limits == [""]
    assert cp1.node.pods["kube-apiserver"].container == started
    assert cp1.stored("kubeadm-config") == maps
    assert '"state":"rolling"' in target_of(cp1)
    assert '"nodes":["cp1","cp2","cp3"]' in target_of(cp1)


def _declared(path: str) -> bytes:
    node = f2(is_seen=True).nodes[0]
    files = {manifest_path(name): text for name, text in (node.manifests or {}).items()}
    return files[path].encode()


def test_an_edit_without_which_the_component_does_not_run_stays(node_of: MakeNode) -> None:
    """Whoever typed it in had a reason, which the cluster does not know."""

    def without_election(pod: object) -> None:
        container(pod)["command"] = [each for each in container(pod)["command"] if each != "--leader-elect=true"]

    cp1 = node_of(edited(SCHEDULER, without_election, make=f1), "cp1")
    before, objects = cp1.files(), cp1.objects()
    cp1.node.breaks = "--leader-elect=true"
    with pytest.raises(ChangeRolledBack, match="kube-scheduler: no container of it runs"):
        cp1.carry_out(first_plan(rollout(cp1.snapshot, correction(cp1.snapshot))))
    assert (cp1.files(), cp1.objects()) == (before, objects)
    assert cp1.node.pods[SCHEDULER].is_running


def test_a_correction_that_not_all_nodes_have_followed_is_given_up(node_of: MakeNode) -> None:
    """Going back to what is recorded changes no file then, and yet has to be recorded: else nothing could follow it."""
    cp1 = node_of(typed_in(), "cp1")
    record = begun(rollout(cp1.snapshot, correction(cp1.snapshot)))
    back = rollout(cp1.snapshot, asked_back(record, 0), record=record)
    assert back.plan.verdict == "none"
    assert not is_needless(ApplyRequest(replaces_unfinished=True), back)
    assert is_needless(ApplyRequest(), back)
    cp1.carry_out(first_plan(back))
    assert '"state":"committed"' in target_of(cp1)
    assert '"revision":2' in target_of(cp1)


def test_a_node_that_follows_takes_its_own_edits_out_and_says_so(node_of: MakeNode) -> None:
    cp2 = node_of(typed_in(), "cp2")
    record = begun(rollout(cp2.snapshot, correction(cp2.snapshot)))
    assert record.target is not None
    plan = plan_following(cp2.snapshot, record, record.target, "cp2")
    following = FollowingNode(
        name="cp2", is_control_plane=True, target=record.target, snapshot=cp2.snapshot, now=NOW,
        parts=parts_of(plan, "cp2"),
    )  # fmt: skip
    cp2.carry_out(following_plan(following))
    assert b"--v=9" not in cp2.files()[manifest_path(SCHEDULER)]
    assert ":done:" in cp2.api.objects[f"{NODES}/cp2"]["metadata"]["annotations"]["garboard.dev/change"]
