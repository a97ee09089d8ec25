"""A change begins on one node and is followed by others: the order, what is recorded, and that all get the same."""

from dataclasses import replace

import msgspec
import pytest

from garboard.change.following import FollowingNode, following_plan, parts_of, plan_following, revision_before
from garboard.change.observing import at
from garboard.change.outcomes import ChangeBlocked
from garboard.change.plan import ChangePlan, NodeChange, PlannedObject
from garboard.change.record import state_of
from garboard.change.rollout import Rollout, first_plan, refuse_blocked
from garboard.change.snapshot import ClusterSnapshot
from garboard.engine import (
    AcquireLease,
    AwaitGate,
    DeleteObject,
    DeletePods,
    Issue,
    PatchObject,
    Plan,
    PutObject,
    ReleaseLease,
    WriteFile,
    refuse_units,
)
from garboard.node.runs import plan_codec
from garboard.phases.change_record import ChangeRecord
from garboard.phases.revision import ChangeTarget, read_revision, read_target
from tests.support.change.applying import applied
from tests.support.change.requests import patch, planned
from tests.support.change.rollouts import NOW, as_worker_sees, begun, reported, rollout
from tests.support.change.snapshots import f1, f2

FLAG, LIMIT, NAME = (
    "scheduler.extraArgs[v]=1",
    "KubeletConfiguration:maxPods=250",
    "apiServer.certSANs+=api.example.com",
)
ETCD = "etcd.local.extraArgs[snapshot-count]=20000"
PROXY = patch('{"kind": "KubeProxyConfiguration", "mode": "nftables"}')


def puts(plan: Plan) -> list[str]:
    return [step.action.name for step in plan.steps if isinstance(step.action, PutObject)]


def targets(plan: Plan) -> list[ChangeTarget]:
    found = [step.action.content for step in plan.steps if isinstance(step.action, PutObject)]
    read = [read_target(each) for each in found if isinstance(each, dict) and at(each, "data", "target")]
    return [each for each in read if each is not None]


def test_a_flag_of_the_scheduler_is_one_manifest_and_one_config_map() -> None:
    """The rest is what the change records of itself."""
    plan = first_plan(rollout(f2(is_seen=True), FLAG))
    written = [step.action.path for step in plan.steps if isinstance(step.action, WriteFile)]
    assert written == ["/etc/kubernetes/manifests/kube-scheduler.yaml"]
    assert {name for step in plan.steps for name in step.restarts} == {"kube-scheduler"}
    assert puts(plan) == [
        "garboard-revision-0", "garboard-revision-1", "garboard:change", "garboard:change", "garboard-change",
        "kubeadm-config", "garboard-change",
    ]  # fmt: skip
    assert [each.state for each in targets(plan)] == ["canary", "rolling"]
    assert not any(isinstance(step.action, Issue) for step in plan.steps)


def test_a_name_is_one_certificate_and_no_restart() -> None:
    plan = first_plan(rollout(f2(is_seen=True), NAME))
    issued = [file.path for step in plan.steps if isinstance(step.action, Issue) for file in step.action.files]
    assert issued == ["/etc/kubernetes/pki/apiserver.key", "/etc/kubernetes/pki/apiserver.crt"]
    assert not any(step.restarts or isinstance(step.action, WriteFile) for step in plan.steps)


def test_etcd_takes_the_api_server_of_its_node_along() -> None:
    plan = first_plan(rollout(f2(is_seen=True), ETCD))
    assert {name for step in plan.steps for name in step.restarts} == {"etcd", "kube-apiserver"}


def test_the_first_node_is_done_before_what_is_shared_is_written() -> None:
    plan = first_plan(rollout(f2(is_seen=True), LIMIT))
    kinds = [step.action for step in plan.steps]
    written = next(index for index, each in enumerate(kinds) if isinstance(each, WriteFile))
    stored = next(i for i, each in enumerate(kinds) if isinstance(each, PutObject) and each.name == "kubelet-config")
    waited = [index for index, each in enumerate(kinds) if isinstance(each, AwaitGate)]
    assert written < min(waited) <= max(waited) < stored


def test_of_kube_proxy_the_map_comes_first_and_then_the_pod_of_this_node() -> None:
    plan = first_plan(rollout(f2(is_seen=True), PROXY))
    kinds = [step.action for step in plan.steps]
    stored = next(i for i, each in enumerate(kinds) if isinstance(each, PutObject) and each.name == "kube-proxy")
    (deleted,) = (index for index, each in enumerate(kinds) if isinstance(each, DeletePods))
    assert stored < deleted
    assert {name for step in plan.steps for name in step.restarts} == {"kube-proxy"}
    assert targets(plan)[-1].nodes == ["cp1", "cp2", "cp3", "w1", "w2", "w3"]


@pytest.mark.parametrize("request_", [FLAG, LIMIT, NAME, ETCD, PROXY])
def test_all_is_under_the_lease_on_one_node_and_can_go_back(request_: object) -> None:
    plan = first_plan(rollout(f2(is_seen=True), request_, here="cp2"))  # type: ignore[arg-type]
    assert isinstance(plan.steps[0].action, AcquireLease)
    assert isinstance(plan.steps[-1].action, ReleaseLease)
    assert {step.node for step in plan.steps} == {"cp2"}
    refuse_units(plan)
    codec = plan_codec()
    assert codec.plan_from_bytes(codec.plan_to_bytes(plan)) == plan


def test_it_begins_where_it_is_told_and_only_there_is_a_snapshot_of_etcd_taken() -> None:
    found = rollout(f2(is_seen=True), ETCD, here="cp2")
    assert found.nodes == ("cp2", "cp1", "cp3")
    snapshots = [each.node for each in found.plan.nodes for step in each.steps if step.phase == "etcd-snapshot"]
    assert snapshots == ["cp2"]


def test_without_other_nodes_it_is_committed_at_once() -> None:
    plan = first_plan(rollout(f1(is_seen=True), FLAG))
    assert [each.state for each in targets(plan)] == ["canary", "committed"]


def test_the_target_that_was_read_is_replaced_and_no_other() -> None:
    record = begun(rollout(f1(is_seen=True), FLAG), "committed")
    after = applied(f1(is_seen=True), planned(f1(is_seen=True), FLAG))
    plan = first_plan(rollout(after, "scheduler.extraArgs[v]=2", record=record))
    first = next(
        step.action
        for step in plan.steps
        if isinstance(step.action, PutObject) and step.action.name == "garboard-change"
    )
    assert first.resource_version == "41"
    assert puts(plan)[0] == "garboard-revision-2", "what is there is what revision 1 has recorded"


def test_what_others_have_changed_meanwhile_gets_a_revision_of_its_own() -> None:
    record = begun(rollout(f1(is_seen=True), FLAG), "committed")
    found = rollout(f1(is_seen=True), LIMIT, record=record)  # the flag was taken out again with kubectl
    assert found.found is not None
    assert (found.found.number, found.found.parent, found.revision.number) == (2, 1, 3)
    assert (found.revision.parent, found.revision.base) == (2, 2)
    assert "by other means" in found.found.message


def test_a_revision_says_who_what_and_why_and_holds_what_will_be() -> None:
    snapshot = f2(is_seen=True)
    found = rollout(snapshot, LIMIT)
    revision = found.revision
    assert (revision.author, revision.message, revision.request, revision.parent) == ("alice", "why", "what", 0)
    assert "maxPods: 250" in revision.documents["kubelet-config"]
    assert revision.documents["kubeadm-config"] == snapshot.stored_text("kubeadm-config")
    content = next(
        step.action.content
        for step in first_plan(found).steps
        if isinstance(step.action, PutObject) and step.action.name == "garboard-revision-1"
    )
    assert isinstance(content, dict)
    assert read_revision(content) == revision


def test_only_the_newest_revisions_stay() -> None:
    record = begun(rollout(f1(is_seen=True), FLAG), "committed")
    old = {number: msgspec.structs.replace(record.require(1), number=number) for number in range(2, 14)}
    assert record.target is not None
    record = replace(
        record,
        revisions={**record.revisions, **old},
        target=msgspec.structs.replace(record.target, revision=13),
    )
    after = applied(f1(is_seen=True), planned(f1(is_seen=True), FLAG))
    plan = first_plan(rollout(after, LIMIT, record=record))
    gone = [step.action.name for step in plan.steps if isinstance(step.action, DeleteObject)]
    assert gone == [f"garboard-revision-{number}" for number in range(5)]


def test_nodes_may_read_the_target_and_revisions_also_the_next_and_no_other_config_map() -> None:
    plan = first_plan(rollout(f1(is_seen=True), FLAG))
    (content,) = (s.action.content for s in plan.steps if isinstance(s.action, PutObject) and s.action.kind == "Role")
    assert at(content, "rules") == [
        {
            "apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"],
            "resourceNames": ["garboard-change", *(f"garboard-revision-{number}" for number in range(11))],
        }
    ]  # fmt: skip


@pytest.mark.parametrize("request_", [FLAG, LIMIT, NAME, ETCD, PROXY, "imageRepository=mirror.example.com/k8s"])
@pytest.mark.parametrize("here", ["cp1", "cp3"])
def test_each_node_finds_out_by_itself_what_the_plan_has_for_it(request_: object, here: str) -> None:
    snapshot = f2(is_seen=True)
    found = rollout(snapshot, request_, here=here)  # type: ignore[arg-type]
    record = begun(found)
    now = _shared_written(snapshot, found)
    assert record.target is not None
    for name in found.others:
        node = snapshot.node(name)
        assert node is not None
        seen = now if node.is_control_plane else as_worker_sees(now, name)
        own = parts_of(plan_following(seen, record, record.target, name), name)
        assert _work(own) == _work(parts_of(found.plan, name)), name


def test_kube_proxy_of_a_node_that_has_said_that_it_is_done_does_not_restart_again() -> None:
    snapshot = f2(is_seen=True)
    found = rollout(snapshot, PROXY)
    record = begun(found)
    assert record.target is not None
    plan = plan_following(_shared_written(snapshot, found), record, record.target, "cp1")
    assert [step.phase for part in parts_of(plan, "cp1") for step in part.steps] == ["kube-proxy", "gates"]
    assert parts_of(plan, "cp1", is_reported=True) == ()
    limit = rollout(snapshot, LIMIT)
    assert parts_of(limit.plan, "cp1", is_reported=True) == parts_of(limit.plan, "cp1"), "there files decide"


def test_node_drains_itself_if_it_runs_more_pods_than_will_fit() -> None:
    """Also a worker, which sees no pods but its own."""
    snapshot = f2(is_seen=True, pods={"cp2": 40, "w1": 35})
    found = rollout(snapshot, "KubeletConfiguration:maxPods=20", "shrinks-capacity")
    assert _drained(found, snapshot) == ["cp2", "w1"]


def test_every_node_drains_itself_if_that_was_asked_for() -> None:
    snapshot = f2(is_seen=True)
    found = rollout(snapshot, LIMIT)
    assert _drained(found, snapshot) == []
    assert _drained(replace(found, intent=replace(found.intent, drains=True)), snapshot) == [*found.others]


def _drained(found: Rollout, snapshot: ClusterSnapshot) -> list[str]:
    """Return which of the nodes that follow are drained while their kubelet restarts."""
    record, now = begun(found), _shared_written(snapshot, found)
    assert record.target is not None
    drained = []
    for name in found.others:
        seen = now if name.startswith("cp") else as_worker_sees(now, name)
        parts = parts_of(plan_following(seen, record, record.target, name), name)
        phases = [step.phase for part in parts for step in part.steps]
        assert phases in (["kubelet-config", "gates"], ["drain", "kubelet-config", "gates", "drain"])
        drained += [name] if "drain" in phases else []
    return drained


def _work(parts: tuple[NodeChange, ...]) -> object:
    """Return what is done: how many members of etcd are up meanwhile is only known where they can be asked."""
    return [
        (step.phase, step.cause, step.restarts, step.issues, step.url,
         [(file.path, file.content, file.diff) for file in step.files])
        for part in parts
        for step in part.steps
    ]  # fmt: skip


def _shared_written(snapshot: ClusterSnapshot, found: Rollout) -> ClusterSnapshot:
    """Return the snapshot after the first node: its files and what is shared are new, other nodes are as they were."""
    parts = [each for each in found.plan.parts if isinstance(each, PlannedObject) or each.node == found.here]
    return applied(snapshot, ChangePlan(parts=tuple(parts)))


def test_a_node_that_has_everything_has_nothing_to_do() -> None:
    snapshot = f2(is_seen=True)
    found = rollout(snapshot, LIMIT)
    record = begun(found)
    assert record.target is not None
    done = applied(snapshot, found.plan)
    for name in found.others:
        assert parts_of(plan_following(as_worker_sees(done, name), record, record.target, name), name) == ()


def test_a_node_that_missed_a_change_gets_both_and_one_that_had_it_the_second_alone() -> None:
    snapshot = f2(is_seen=True)
    first = rollout(snapshot, FLAG)
    record = reported(begun(first), first.target(first.revision), "done", "cp2")
    between = _shared_written(snapshot, first)
    second = rollout(between, "scheduler.extraArgs[profiling]=false", "hand-edit", record=record)
    assert (second.revision.parent, second.revision.base) == (1, 0)
    record = begun(second)
    wanted = second.revision
    assert (revision_before(record, wanted, "cp2").number, revision_before(record, wanted, "cp3").number) == (1, 0)
    assert record.target is not None
    own = parts_of(plan_following(_shared_written(between, second), record, record.target, "cp3"), "cp3")
    added = [line for part in own for step in part.steps for file in step.files for line in file.diff.splitlines()]
    assert {line for line in added if line.startswith("+    ")} == {"+    - --v=1", "+    - --profiling=false"}


def test_a_report_that_names_another_digest_is_not_believed() -> None:
    first = rollout(f2(is_seen=True), FLAG)
    record = begun(first)
    second = rollout(_shared_written(f2(is_seen=True), first), LIMIT, record=record)
    record = begun(second)
    lying = replace(record.reports["cp1"], revision=1, digest="0" * 64)
    record = replace(record, reports={"cp2": lying})
    assert revision_before(record, second.revision, "cp2").number == 0


def test_a_recorded_revision_is_planned_back_to_and_then_nothing_is_left() -> None:
    snapshot = f2(is_seen=True)
    found = rollout(snapshot, FLAG)
    record = begun(found)
    after = applied(snapshot, found.plan)
    back = planned(after, state_of(record.require(0)))
    again = applied(after, back)
    assert again.stored_text("kubeadm-config") == snapshot.stored_text("kubeadm-config")
    assert [each.manifests for each in again.nodes] == [each.manifests for each in snapshot.nodes]
    assert planned(again, state_of(record.require(0))).verdict == "none"


def following(name: str = "cp2", **more: object) -> FollowingNode:
    snapshot = f2(is_seen=True)
    found = rollout(snapshot, FLAG)
    record = begun(found)
    assert record.target is not None
    node = FollowingNode(
        name=name, is_control_plane=name.startswith("cp"), target=record.target, snapshot=snapshot, now=NOW,
        parts=parts_of(found.plan, name), target_version="41",
    )  # fmt: skip
    return replace(node, **more)  # type: ignore[arg-type]


def test_a_control_plane_that_follows_does_its_part_under_the_lease_and_says_so_on_its_own_node() -> None:
    plan = following_plan(following())
    assert isinstance(plan.steps[0].action, AcquireLease)
    (said,) = (step.action for step in plan.steps if isinstance(step.action, PatchObject))
    assert (said.kind, said.name) == ("Node", "cp2")
    assert puts(plan) == [], "what is shared is not its to write"


def test_the_last_one_says_that_all_is_done() -> None:
    plan = following_plan(following(is_last=True))
    (target,) = targets(plan)
    assert target.state == "committed"


def test_a_worker_takes_no_lease_and_writes_nothing_but_its_own_node() -> None:
    plan = following_plan(following("w1", is_last=True))
    assert [type(step.action) for step in plan.steps] == [PatchObject]
    assert plan.steps[0].node == "w1"


def test_a_node_that_has_all_and_has_said_so_has_no_steps() -> None:
    assert following_plan(following("w1", is_reported=True)).steps == ()


@pytest.mark.parametrize(
    ("request_", "told"),
    [
        ("certificatesDir=/srv", "certificatesDir .certificates-dir."),
        ("KubeletConfiguration:topologyManagerPolicy=best-effort", "has to be accepted: .*drain-needed"),
    ],
)
def test_what_is_blocked_or_not_accepted_is_refused(request_: str, told: str) -> None:
    with pytest.raises(ChangeBlocked, match=told) as refused:
        refuse_blocked(planned(f1(is_seen=True), request_))
    assert refused.value.exit_code == 11
    refuse_blocked(planned(f1(is_seen=True), FLAG))


def test_nothing_is_recorded_before_the_first_change() -> None:
    found = rollout(f1(), FLAG).found
    assert found is not None
    assert (found.number, found.parent, ChangeRecord().current) == (0, None, None)
