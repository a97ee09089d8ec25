"""Hand edits are taken out: each node is as it is declared then, and what else it has stays as it is."""

from typing import Any

import msgspec
import pytest

from garboard.change.capacity import _DEFAULT_PODS
from garboard.change.correcting import correction_of
from garboard.change.document import plan_document
from garboard.change.drift_names import DriftNames
from garboard.change.drift_request import DriftRequest
from garboard.change.drifting import drift_of_files
from garboard.change.following import parts_of, plan_following
from garboard.change.history import history_document
from garboard.change.node_work import PlanOptions
from garboard.change.plan import ChangePlan
from garboard.change.planning import plan_change
from garboard.change.request import DriftCorrection
from garboard.change.saved_plan import SavedPlan
from garboard.change.snapshot import ClusterSnapshot
from garboard.documents import read_yaml, write_yaml
from garboard.drift import DriftKind
from garboard.errors import BadUsage
from tests.support.change.applying import applied
from tests.support.change.edited_nodes import (
    API_SERVER,
    EDITS,
    ETCD,
    KCM,
    Edit,
    container,
    edited,
    with_flag,
    with_kubelet_line,
    with_variable,
)
from tests.support.change.requests import codes, phases, restarts
from tests.support.change.rollouts import begun, reported, rollout
from tests.support.change.snapshots import f1, f2

replace = msgspec.structs.replace


def correction(snapshot: ClusterSnapshot, *names: str) -> DriftCorrection:
    return correction_of(drift_of_files(snapshot), DriftNames.parse(names))


def planned(snapshot: ClusterSnapshot, *names: str, accepted: tuple[str, ...] = ()) -> ChangePlan:
    return plan_change(snapshot, correction(snapshot, *names), accepted)


def kinds(snapshot: ClusterSnapshot) -> set[DriftKind]:
    return {each.kind for part in drift_of_files(snapshot).nodes for each in part.differences}


@pytest.mark.parametrize(("component", "edit"), EDITS.values(), ids=EDITS)
@pytest.mark.parametrize("node", ["*", "cp2"])
def test_nodes_are_as_they_are_declared_and_only_what_was_edited_restarts(
    component: str, edit: Edit, node: str
) -> None:
    snapshot = edited(component, edit, node=node, make=f2)
    plan = planned(snapshot)
    assert (plan.verdict, plan.objects) == ("allowed", ())
    nodes = ["cp1", "cp2", "cp3"] if node == "*" else ["cp2"]
    assert restarts(plan) == dict.fromkeys(nodes, [ETCD, API_SERVER] if component == ETCD else [component])
    after = applied(snapshot, plan)
    assert kinds(after) <= {DriftKind.COSMETIC}
    assert planned(after).verdict == "none"
    assert after.config_maps == snapshot.config_maps


def test_surroundings_and_what_was_not_named_stay() -> None:
    def change(_node: str, name: str, text: str) -> str:
        document: Any = read_yaml(text, source=name)
        container(document)["env"] = [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}]
        container(document)["command"] += ["--v=3"] if name == API_SERVER else []
        container(document)["command"] += ["--profiling=false"] if name == API_SERVER else []
        return write_yaml(document)

    snapshot = f1(is_seen=True, change_manifest=change)
    after = applied(snapshot, planned(snapshot, "kube-apiserver:--v"))
    (text,) = (each.manifests[API_SERVER] for each in after.control_planes if each.manifests)
    assert "HTTPS_PROXY" in text
    assert "--profiling=false" in text
    assert "--v=3" not in text


@pytest.mark.parametrize(
    ("name", "is_meant"),
    [
        ("cp2/", True), ("cp1/", False), ("kube-apiserver", True), ("cp2/kube-apiserver", True), ("etcd", False),
        ("kube-apiserver:--profiling", True), ("kube-apiserver:--profilin", False), ("kube-apiserver:spec", True),
        ("kube-apiserver:spec.containers[name=kube-apiserver]", True), ("cp3/kube-apiserver:--profiling", False),
    ],
)  # fmt: skip
def test_edits_are_named_by_node_component_and_field(name: str, is_meant: bool) -> None:
    snapshot = edited(API_SERVER, with_flag("--profiling=false"), node="cp2", make=f2)
    assert bool(planned(snapshot, name).parts) is is_meant
    request = DriftRequest(policy="overwrite", names=DriftNames.parse([name]))
    if is_meant:
        assert request.resolved(snapshot, drift_of_files) == correction(snapshot, name)
    else:
        with pytest.raises(BadUsage, match="there is no such hand edit"):
            request.resolved(snapshot, drift_of_files)


@pytest.mark.parametrize("name", ["", ":--profiling", "a b", "Kube-Apiserver", "cp1/kube-apiserver:", "a/b/c"])
def test_what_names_nothing_is_refused(name: str) -> None:
    with pytest.raises(BadUsage, match="names no difference"):
        DriftNames.parse([name])


def test_what_is_declared_and_not_there_comes_only_where_it_is_named() -> None:
    """Somebody may have changed a ConfigMap, which is not to be rolled out unasked."""
    arguments = {"apiServer": {"extraArgs": [{"name": "event-ttl", "value": "2h"}]}}

    def edit(pod: Any) -> None:
        container(pod)["command"] = [each for each in container(pod)["command"] if "event-ttl" not in each]

    snapshot = edited(API_SERVER, edit, cluster=arguments)
    assert kinds(snapshot) == {DriftKind.PENDING}
    assert planned(snapshot).verdict == "none"
    assert planned(snapshot, "kube-apiserver").verdict == "none"
    plan = planned(snapshot, "kube-apiserver:--event-ttl")
    assert restarts(plan) == {"cp1": [API_SERVER]}
    assert kinds(applied(snapshot, plan)) <= {DriftKind.COSMETIC}


def test_a_patched_node_goes_back_to_its_patches() -> None:
    seen = f1(is_seen=True, kubelet={"maxPods": 100})
    files = {"kubeletconfiguration.yaml": "maxPods: 60\n"}
    nodes = [replace(each, patch_set="d") if each.name == "w1" else each for each in seen.nodes]
    snapshot = replace(seen, nodes=nodes, patch_sets={"d": files})
    changed = [
        replace(each, kubelet_config=(each.kubelet_config or "").replace("maxPods: 100", "maxPods: 200"))
        for each in snapshot.nodes
    ]
    plan = planned(replace(snapshot, nodes=changed), "w1/")
    (step,) = (step for each in plan.nodes for step in each.steps if step.files)
    assert (step.files[0].content or b"").count(b"maxPods: 60\n") == 1


def test_a_kubelet_that_runs_more_than_fits_then_is_drained_if_that_is_accepted() -> None:
    seen = f1(is_seen=True, pods={"w1": _DEFAULT_PODS + 20, "w2": _DEFAULT_PODS + 20})
    snapshot = with_kubelet_line(seen, "maxPods: 250", "w1")
    plan = planned(snapshot)
    assert (plan.verdict, plan.unconfirmed) == ("advice", ("shrinks-capacity",))
    assert "w2" not in str(plan.attributes)
    accepted = planned(snapshot, accepted=("shrinks-capacity",))
    assert phases(accepted, "w1") == ["drain", "kubelet-config", "gates", "drain"]
    assert accepted.unconfirmed == ()


def test_a_policy_of_the_kubelet_takes_its_state_file_along() -> None:
    snapshot = with_kubelet_line(f1(is_seen=True), "cpuManagerPolicy: static", "w1")
    plan = planned(snapshot, accepted=("drain-needed",))
    files = [file.path for each in plan.nodes for step in each.steps for file in step.files]
    assert files == ["/var/lib/kubelet/config.yaml", "/var/lib/kubelet/cpu_manager_state"]


def test_a_member_that_is_down_blocks_what_restarts_etcd() -> None:
    snapshot = edited(ETCD, EDITS["a request"][1], node="cp1", make=f2)
    members = [replace(each, is_healthy=each.name != "cp3") for each in snapshot.members or ()]
    plan = planned(replace(snapshot, members=members))
    assert (plan.verdict, set(codes(plan)), plan.parts) == ("blocked", {"no-quorum"}, ())


def test_the_first_node_takes_the_snapshot_of_etcd() -> None:
    snapshot = edited(ETCD, EDITS["a request"][1], node="*", make=f2)
    plan = plan_change(snapshot, correction(snapshot), options=PlanOptions(first="cp2"))
    assert [each.node for each in plan.nodes] == ["cp2", "cp1", "cp3"]
    assert [each.node for each in plan.nodes if "etcd-snapshot" in phases(plan, each.node)] == ["cp2"]


def test_files_that_nobody_has_seen_are_assumed_to_be_as_they_run() -> None:
    seen = edited(API_SERVER, with_flag("--profiling=false"), node="cp2", make=f2)
    found = correction(seen)
    unseen = replace(seen, nodes=[replace(each, manifests=None) for each in seen.nodes])
    (step,) = (step for each in plan_change(unseen, found).nodes for step in each.steps if step.files)
    assert step.files[0].is_assumed
    assert "-    - --profiling=false\n" in step.files[0].diff


def test_values_of_variables_are_in_no_verdict() -> None:
    plan = planned(edited(API_SERVER, with_variable))
    assert not any("s3cret" in str(each) for each in plan.attributes)


def test_what_is_not_put_back_is_told() -> None:
    seen = f1(is_seen=True)
    manifests = {name: text for name, text in (seen.nodes[0].manifests or {}).items() if name != KCM}
    plan = planned(replace(seen, nodes=[replace(seen.nodes[0], manifests=manifests), *seen.nodes[1:]]))
    (warning,) = plan.warnings
    assert warning.startswith("/etc/kubernetes/manifests/kube-controller-manager.yaml on cp1: . stays as it is")
    assert plan.verdict == "none"


def test_a_saved_plan_asks_for_the_same_again() -> None:
    snapshot = edited(API_SERVER, with_flag("--profiling=false"), node="*", make=f2)
    plan = planned(snapshot, "kube-apiserver:--profiling")
    saved = SavedPlan(plan_document(plan))
    assert saved.correction is not None
    again = plan_change(snapshot, saved.correction.resolved(snapshot, drift_of_files))
    saved.refuse_stale([again])
    assert SavedPlan(plan_document(plan_change(snapshot, correction(f2(is_seen=True))))).correction is not None


def test_nodes_that_follow_find_out_by_the_names_what_they_have_to_do() -> None:
    snapshot = edited(API_SERVER, with_flag("--profiling=false"), node="*", make=f2)
    snapshot = with_kubelet_line(snapshot, "maxPods: 250", "cp2", "w1")
    found = rollout(snapshot, correction(snapshot, "kube-apiserver"))
    record = begun(found)
    assert record.target is not None
    assert (record.target.nodes, found.revision.corrects) == (["cp1", "cp2", "cp3"], ["kube-apiserver"])
    own = plan_following(snapshot, record, record.target, "cp2")
    assert parts_of(own, "cp2") == parts_of(found.plan, "cp2")
    assert plan_following(snapshot, record, record.target, "w1").parts == ()
    # What is edited there once it is done is another matter: nobody has asked for that.
    done = reported(record, record.target, "done", "cp2")
    assert plan_following(snapshot, done, record.target, "cp2").parts == ()


def test_history_says_which_edits_went() -> None:
    snapshot = edited(API_SERVER, with_flag("--profiling=false"))
    record = begun(rollout(snapshot, correction(snapshot, "kube-apiserver")))
    document: Any = history_document(record)
    newest, first = document["revisions"]
    assert (newest["corrects"], "corrects" in first) == (["kube-apiserver"], False)


def test_all_edits_are_recorded_as_such_and_others_are_no_correction() -> None:
    snapshot = edited(API_SERVER, with_flag("--profiling=false"))
    assert rollout(snapshot, correction(snapshot)).revision.corrects == ["*"]
    assert rollout(f1(is_seen=True), "scheduler.extraArgs[v]=1").revision.corrects == []
