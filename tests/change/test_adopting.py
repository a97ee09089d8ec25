"""Hand edits are recorded as they are: the configuration or a patch explains them then, and no node is touched."""

from collections.abc import Mapping

import msgspec
import pytest

from garboard.change.adopting import adoption_of
from garboard.change.drift_names import DriftNames
from garboard.change.drifting import drift_of_files
from garboard.change.plan import ChangePlan
from garboard.change.planning import plan_change
from garboard.change.request import DriftAdoption
from garboard.change.snapshot import ClusterSnapshot
from garboard.drift import DriftKind
from garboard.model import DEFAULT_VERSION, KubernetesVersion
from garboard.patches import MARKER
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
    with_volume,
    without_flag,
)
from tests.support.change.requests import codes, restarts, sets
from tests.support.change.snapshots import f1, f2

replace = msgspec.structs.replace


def adopted(snapshot: ClusterSnapshot, *names: str) -> DriftAdoption:
    return adoption_of(snapshot, drift_of_files, DriftNames.parse(names))


def planned(snapshot: ClusterSnapshot, *names: str) -> ChangePlan:
    return plan_change(snapshot, adopted(snapshot, *names))


def left_edits(snapshot: ClusterSnapshot) -> list[tuple[str, str]]:
    found = drift_of_files(snapshot).nodes
    kinds = (DriftKind.HAND_EDIT, DriftKind.PENDING)
    return [(part.node, each.field) for part in found for each in part.differences if each.kind in kinds]


def stored(plan: ChangePlan) -> str:
    """Return the configuration of the cluster that a plan writes; empty if it writes none."""
    return next((dict(each.data)["ClusterConfiguration"] for each in plan.objects if each.name == "kubeadm-config"), "")


@pytest.mark.parametrize("version", [KubernetesVersion(1, 36, 4), DEFAULT_VERSION], ids=str)
@pytest.mark.parametrize(("component", "edit"), EDITS.values(), ids=EDITS)
@pytest.mark.parametrize("node", ["*", "cp2"])
def test_what_was_adopted_is_explained_and_no_node_was_touched(
    component: str, edit: Edit, node: str, version: KubernetesVersion
) -> None:
    snapshot = edited(component, edit, node=node, make=f2, version=version)
    plan = planned(snapshot)
    assert (plan.verdict, plan.nodes, plan.warnings) == ("allowed", (), ())
    after = applied(snapshot, plan)
    assert left_edits(after) == []
    assert planned(after).verdict == "none"
    assert [each.manifests for each in after.nodes] == [each.manifests for each in snapshot.nodes]


@pytest.mark.parametrize(("component", "edit"), EDITS.values(), ids=EDITS)
def test_a_later_change_of_the_component_keeps_what_was_adopted_and_is_not_blocked(component: str, edit: Edit) -> None:
    snapshot = edited(component, edit, node="cp2", make=f2)
    request = sets("apiServer.extraArgs[v]=3", "controllerManager.extraArgs[v]=3", "scheduler.extraArgs[v]=3",
                   "etcd.local.extraArgs[snapshot-count]=20000")  # fmt: skip
    assert "hand-edit" in codes(plan_change(snapshot, request))
    recorded = applied(snapshot, planned(snapshot))
    plan = plan_change(recorded, request)
    assert "hand-edit" not in codes(plan)
    assert component in restarts(plan)["cp2"]
    assert left_edits(applied(recorded, plan)) == []


def test_a_flag_that_all_control_planes_have_goes_into_the_configuration() -> None:
    plan = planned(edited(API_SERVER, with_flag("--profiling=false"), node="*", make=f2))
    assert [each.name for each in plan.objects] == ["kubeadm-config"]
    assert '- name: profiling\n    value: "false"' in stored(plan)
    assert [each.label for each in plan.attributes] == ["apiServer.extraArgs[profiling]"]


@pytest.mark.parametrize("node", ["*", "cp2"])
def test_a_flag_without_a_value_is_recorded_as_true(node: str) -> None:
    snapshot = edited(API_SERVER, with_flag("--profiling"), node=node, make=f2)
    plan = planned(snapshot)
    assert left_edits(applied(snapshot, plan)) == []
    assert ('name: profiling\n    value: "true"' in stored(plan)) is (node == "*")


def test_a_flag_of_one_control_plane_is_a_patch_of_that_node() -> None:
    """The others do not have it, and must not get it by what only keeps a record."""
    snapshot = edited(API_SERVER, with_flag("--profiling=false"), node="cp2", make=f2)
    plan = planned(snapshot)
    assert [each.name for each in plan.objects] == ["garboard-patches"]
    after = applied(snapshot, plan)
    assert [each.name for each in after.nodes if each.patch_set] == ["cp2"]
    (files,) = after.patch_sets.values()
    assert files == {MARKER: "", "kube-apiserver~found+args.yaml": 'profiling: "false"\n'}


def test_control_planes_that_disagree_keep_each_its_own() -> None:
    values = {"cp1": "1", "cp2": "2", "cp3": "2"}

    def typed(node: str, component: str, text: str) -> str:
        if component != API_SERVER:
            return text
        return text.replace("    - --allow-p", f"    - --v={values[node]}\n    - --allow-p", 1)

    snapshot = f2(is_seen=True, change_manifest=typed)
    after = applied(snapshot, planned(snapshot))
    assert stored(planned(snapshot)) == ""
    assert left_edits(after) == []
    first, second, third = (each.patch_set for each in after.control_planes)
    assert first != second == third


def test_volumes_and_variables_go_into_the_configuration_where_it_can_say_them() -> None:
    def edit(pod: object) -> None:
        with_volume(pod)
        with_variable(pod)

    plan = planned(edited(API_SERVER, edit, node="*", make=f2))
    assert [each.name for each in plan.objects] == ["kubeadm-config"]
    text = stored(plan)
    assert "extraVolumes:\n  - hostPath: /etc/audit\n    mountPath: /etc/audit\n    name: audit" in text
    assert "extraEnvs:\n  - name: TOKEN\n    value: s3cret" in text


@pytest.mark.parametrize(
    ("component", "edit"),
    [
        pytest.param(API_SERVER, with_flag("--storage-backend=etcd3"), id="a flag that others decide"),
        pytest.param(KCM, without_flag("leader-elect"), id="a flag of kubeadm's own, taken out"),
        pytest.param(ETCD, EDITS["a request"][1], id="a request for memory"),
    ],
)
def test_what_the_configuration_cannot_say_is_a_patch(component: str, edit: Edit) -> None:
    snapshot = edited(component, edit, node="*", make=f2)
    plan = planned(snapshot)
    assert [each.name for each in plan.objects] == ["garboard-patches"]
    assert left_edits(applied(snapshot, plan)) == []


def test_an_argument_of_the_configuration_that_was_changed_on_all_nodes_is_stored_as_it_is() -> None:
    def edit(pod: object) -> None:
        words = container(pod)["command"]
        container(pod)["command"] = [each.replace("--event-ttl=2h", "--event-ttl=9h") for each in words]

    arguments: Mapping[str, object] = {"extraArgs": [{"name": "event-ttl", "value": "2h"}]}
    snapshot = edited(API_SERVER, edit, node="*", make=f2, cluster={"apiServer": arguments})
    plan = planned(snapshot)
    assert [each.after for each in plan.attributes] == ["9h"]
    assert left_edits(applied(snapshot, plan)) == []


@pytest.mark.parametrize("nodes", [("w1",), ("cp1", "cp2", "cp3", "w1", "w2", "w3")], ids=["one", "all"])
def test_a_field_of_kubelets_is_configuration_if_all_have_it_and_else_a_patch(nodes: tuple[str, ...]) -> None:
    snapshot = with_kubelet_line(f2(is_seen=True), "maxPods: 42", *nodes)
    plan = planned(snapshot)
    names = {each.name for each in plan.objects}
    assert names == ({"kubelet-config"} if len(nodes) > 1 else {"garboard-patches", "w1"})
    after = applied(snapshot, plan)
    assert left_edits(after) == []
    assert plan.nodes == ()


def test_only_what_was_named_is_recorded() -> None:
    def edit(pod: object) -> None:
        container(pod)["command"] += ["--profiling=false", "--event-ttl=2h"]

    snapshot = edited(API_SERVER, edit, make=f1)
    plan = planned(snapshot, "cp1/kube-apiserver:--event-ttl")
    assert [each.label for each in plan.attributes] == ["apiServer.extraArgs[event-ttl]"]
    assert left_edits(applied(snapshot, plan)) == [("cp1", "spec.containers[name=kube-apiserver].command[--profiling]")]


def test_patches_that_are_recorded_stay_in_front_of_those_that_are_added() -> None:
    snapshot = edited(API_SERVER, with_flag("--profiling=false"), node="cp2", make=f2)
    first = applied(snapshot, planned(snapshot))
    node = first.node("cp2")
    assert node is not None
    manifests = dict(node.manifests or {})
    manifests[API_SERVER] = manifests[API_SERVER].replace("--profiling=false", "--profiling=false\n    - --v=7")
    nodes = [replace(each, manifests=manifests) if each.name == "cp2" else each for each in first.nodes]
    second = replace(first, nodes=nodes)
    after = applied(second, planned(second))
    assert left_edits(after) == []
    newest = after.node("cp2")
    assert newest is not None
    files = after.patch_sets[newest.patch_set]
    assert set(files) == {MARKER, "kube-apiserver~found+args.yaml", "node/cp2/kube-apiserver~found+args.yaml"}


def test_what_nothing_can_record_is_told() -> None:
    seen = f1(is_seen=True)
    manifests = {name: text for name, text in (seen.nodes[0].manifests or {}).items() if name != "kube-scheduler"}
    plan = planned(replace(seen, nodes=[replace(seen.nodes[0], manifests=manifests), *seen.nodes[1:]]))
    assert plan.verdict == "none"
    assert plan.warnings == (
        "/etc/kubernetes/manifests/kube-scheduler.yaml on cp1: . cannot be recorded by a change",
    )  # fmt: skip


def test_values_of_variables_are_in_no_verdict() -> None:
    plan = planned(edited(API_SERVER, with_variable, node="cp2", make=f2))
    assert not any("s3cret" in str(each) for each in plan.attributes)
