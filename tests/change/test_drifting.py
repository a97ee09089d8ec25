"""Nodes are compared with what their cluster stores, and their hand edits are kept as patches that explain them."""

from typing import Any

import msgspec
import pytest

from garboard.change.adopt_drift import PATCHES_FOLDER, drift_findings
from garboard.change.drift_files import capture_node, node_to_capture
from garboard.change.drift_text import drift_as_json, drift_as_text
from garboard.change.drifting import ClusterDrift, cluster_drift
from garboard.change.snapshot import ClusterSnapshot
from garboard.documents import Json, read_yaml, write_yaml
from garboard.drift import DriftKind
from garboard.errors import BadUsage, NotReady
from garboard.model import DEFAULT_VERSION, KubernetesVersion
from garboard.patches import MARKER
from garboard.phases.node.records import PatchSetContent
from tests.support.change.edited_nodes import API_SERVER, EDITS, KCM, Edit, container, edited, with_flag
from tests.support.change.snapshots import f1, f2

replace = msgspec.structs.replace


def drift_of(snapshot: ClusterSnapshot) -> ClusterDrift:
    return cluster_drift(snapshot, {}, {})


def kinds(found: ClusterDrift, node: str = "cp1") -> set[DriftKind]:
    return {each.kind for part in found.nodes if part.node == node for each in part.differences}


@pytest.mark.parametrize("version", [KubernetesVersion(1, 36, 4), DEFAULT_VERSION], ids=str)
def test_there_is_no_drift_in_what_was_rendered(version: KubernetesVersion) -> None:
    found = drift_of(f2(is_seen=True, version=version))
    assert [(each.node, len(each.subjects)) for each in found.nodes] == [
        ("cp1", 6), ("cp2", 6), ("cp3", 6), ("w1", 2), ("w2", 2), ("w3", 2),
    ]  # fmt: skip
    assert not found.has_drift
    assert kinds(found) == set()


@pytest.mark.parametrize(("component", "edit"), EDITS.values(), ids=EDITS)
def test_hand_edit_is_found_with_what_was_declared(component: str, edit: Edit) -> None:
    found = drift_of(edited(component, edit))
    assert found.has_drift
    assert kinds(found) == {DriftKind.HAND_EDIT}
    assert {each.component for part in found.nodes for each in part.edits} == {component}


@pytest.mark.parametrize(("component", "edit"), EDITS.values(), ids=EDITS)
def test_captured_patches_explain_the_edit(component: str, edit: Edit) -> None:
    snapshot = edited(component, edit)
    captured = capture_node(drift_of(snapshot), snapshot, DEFAULT_VERSION, "cp1")
    assert captured.left == ()
    found = drift_of(with_patches(snapshot, captured.files))
    assert not found.has_drift
    assert kinds(found) - {DriftKind.COSMETIC} == {DriftKind.PATCH}


def with_patches(snapshot: ClusterSnapshot, files: Any) -> ClusterSnapshot:
    """Return the cluster with a patch set recorded for cp1."""
    digest = PatchSetContent({path: text.encode() for path, text in files.items()}).digest
    nodes = [replace(each, patch_set=digest) if each.name == "cp1" else each for each in snapshot.nodes]
    return replace(snapshot, nodes=nodes, patch_sets={digest: dict(files)})


def test_recorded_patches_are_kept_beside_those_that_are_captured() -> None:
    recorded = {"kube-apiserver.yaml": "metadata:\n  labels:\n    team: x\n"}

    def edit(pod: Any) -> None:
        pod["metadata"]["labels"]["team"] = "x"
        container(pod)["command"].append("--profiling=false")

    snapshot = with_patches(edited(API_SERVER, edit), recorded)
    captured = capture_node(drift_of(snapshot), snapshot, DEFAULT_VERSION, "cp1")
    assert captured.files["kube-apiserver.yaml"] == recorded["kube-apiserver.yaml"]
    assert (captured.kept, len(captured.files)) == (1, 2)
    again = with_patches(snapshot, captured.files)
    assert kinds(drift_of(again)) == {DriftKind.PATCH}


def test_edit_after_one_that_was_captured_gets_a_file_of_its_own() -> None:
    first = edited(API_SERVER, with_flag("--profiling=false"))
    captured = capture_node(drift_of(first), first, DEFAULT_VERSION, "cp1")

    def edit(pod: Any) -> None:
        container(pod)["command"] += ["--profiling=false", "--event-ttl=2h"]

    second = with_patches(edited(API_SERVER, edit), captured.files)
    again = capture_node(drift_of(second), second, DEFAULT_VERSION, "cp1")
    assert sorted(again.files) == ["kube-apiserver~found-flags+json.yaml", "kube-apiserver~~found-flags+json.yaml"]
    assert kinds(drift_of(with_patches(second, again.files))) == {DriftKind.PATCH}


def test_tree_of_patches_is_written_out_for_kubeadm() -> None:
    tree = {"kube-apiserver+args.yaml": "profiling: 'false'\n"}

    def edit(pod: Any) -> None:
        container(pod)["command"] += ["--profiling=false", "--event-ttl=2h"]

    snapshot = with_patches(edited(API_SERVER, edit), {**tree, MARKER: ""})
    captured = capture_node(drift_of(snapshot), snapshot, DEFAULT_VERSION, "cp1")
    assert MARKER not in captured.files
    assert not any("+args" in name for name in captured.files)
    assert kinds(drift_of(with_patches(snapshot, captured.files))) == {DriftKind.PATCH}


def test_edit_is_seen_in_what_runs_where_no_file_was_seen() -> None:
    seen = edited(API_SERVER, with_flag("--profiling=false"))
    nodes = [replace(each, manifests=None, kubelet_config=None, kubelet_flags=None) for each in seen.nodes]
    manifests = seen.nodes[0].manifests or {}
    mirrors: dict[str, dict[str, Json]] = {
        "cp1": {name: read_yaml(text, source=name) for name, text in manifests.items()}
    }
    snapshot = replace(seen, nodes=nodes)
    found = cluster_drift(snapshot, mirrors, {})
    assert [(each.node, len(each.edits)) for each in found.nodes] == [("cp1", 1)]
    captured = capture_node(found, snapshot, DEFAULT_VERSION, "cp1")
    again = cluster_drift(with_patches(snapshot, captured.files), mirrors, {})
    assert kinds(again) == {DriftKind.PATCH}


def test_file_that_is_gone_is_drift() -> None:
    seen = f1(is_seen=True)
    manifests = {name: text for name, text in (seen.nodes[0].manifests or {}).items() if name != "kube-scheduler"}
    snapshot = replace(seen, nodes=[replace(seen.nodes[0], manifests=manifests), *seen.nodes[1:]])
    assert [each.reason for part in drift_of(snapshot).nodes for each in part.edits] == ["it is not there"]


def test_comment_and_proxy_of_the_shell_are_no_drift() -> None:
    def change(_node: str, name: str, text: str) -> str:
        if name != KCM:
            return f"# kept by hand\n{text}"
        document: Any = read_yaml(text, source=name)
        container(document)["env"] = [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}]
        return write_yaml(document)

    found = drift_of(f1(is_seen=True, change_manifest=change))
    assert not found.has_drift
    assert kinds(found) == {DriftKind.COSMETIC, DriftKind.ENVIRONMENTAL}


def test_kubelet_that_was_edited_is_told_by_its_field() -> None:
    seen = f1(is_seen=True)
    worker = replace(seen.nodes[1], kubelet_config=f"{seen.nodes[1].kubelet_config}maxPods: 42\n")
    found = drift_of(replace(seen, nodes=[seen.nodes[0], worker, seen.nodes[2]]))
    assert [(part.node, each.field) for part in found.nodes for each in part.edits] == [("w1", "maxPods")]


def test_workloads_of_the_addons_are_compared() -> None:
    daemon_set: Any = {
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "kube-proxy", "namespace": "kube-system"},
        "spec": {"template": {"spec": {"containers": [{"name": "kube-proxy", "image": "example.com/kube-proxy:1"}]}}},
    }  # fmt: skip
    found = cluster_drift(f1(), {}, {"kube-proxy": daemon_set})
    assert "spec.template.spec.containers[name=kube-proxy].image" in {each.field for each in found.objects.differences}


def test_node_whose_edits_are_kept_is_named_or_clear() -> None:
    one = drift_of(edited(API_SERVER, with_flag("--profiling=false"), node="cp2", make=f2))
    assert node_to_capture(one, "", "") == "cp2"
    assert node_to_capture(one, "cp1", "") == "cp1"
    assert node_to_capture(one, "cp1", "cp3") == "cp3"
    with pytest.raises(BadUsage, match="no node has hand edits"):
        node_to_capture(drift_of(f2(is_seen=True)), "", "")
    with pytest.raises(NotReady, match="nothing of node 'cp9'"):
        capture_node(one, f2(), DEFAULT_VERSION, "cp9")


def test_text_and_json_show_each_place_with_its_source() -> None:
    found = drift_of(edited(API_SERVER, with_flag("--profiling=false")))
    text = drift_as_text(found, ("the members of etcd",), shows_explained=False)
    assert "Node cp1\n  /etc/kubernetes/manifests/kube-apiserver.yaml:\n" in text
    assert 'on disk:   "false"    # /etc/kubernetes/manifests/kube-apiserver.yaml' in text
    assert "1 hand-edit" in text
    assert "not looked at: the members of etcd" in text
    document: Any = drift_as_json(found, ())
    assert (document["kind"], document["drift"]) == ("DriftReport", True)
    (difference,) = document["nodes"][0]["differences"]
    assert (difference["kind"], difference["onDisk"]["value"]) == ("hand-edit", "false")


def test_hand_edit_is_a_finding_of_adopt_with_the_command_that_keeps_it() -> None:
    (finding,) = drift_findings(edited(API_SERVER, with_flag("--profiling=false"), node="cp2", make=f2), {}, {})
    assert (finding.code, finding.node, finding.subject) == ("hand-edit", "cp2", API_SERVER)
    assert "--profiling" in finding.message
    assert finding.cure.startswith("garboard change drift --adopt --only cp2/kube-apiserver records it")


def test_patches_that_nobody_has_recorded_are_a_finding() -> None:
    seen = f1(is_seen=True)
    node = replace(seen.nodes[0], host_paths={PATCHES_FOLDER: "folder"})
    (finding,) = drift_findings(replace(seen, nodes=[node, *seen.nodes[1:]]), {}, {})
    assert (finding.code, finding.node) == ("patches-not-recorded", "cp1")
    recorded = replace(node, patch_set="")
    assert [*drift_findings(replace(seen, nodes=[replace(recorded, host_paths={}), *seen.nodes[1:]]), {}, {})] == []


@pytest.mark.parametrize(
    ("old", "new", "codes"),
    [
        pytest.param("podSubnet: 10.244.0.0/16", "podSubnet: [1]", ["unreadable-config"], id="a wrong type"),
        pytest.param("v1.37.1", "v1.33.2", [], id="a minor that is not known"),
    ],
)
def test_configuration_that_cannot_be_rendered_is_told(old: str, new: str, codes: list[str]) -> None:
    seen = f1()
    config = seen.config_maps["kubeadm-config"]
    text = config.data["ClusterConfiguration"].replace(old, new)
    maps = {**seen.config_maps, "kubeadm-config": replace(config, data={"ClusterConfiguration": text})}
    assert [each.code for each in drift_findings(replace(seen, config_maps=maps), {}, {})] == codes


def test_cluster_without_a_configuration_has_no_drift_to_tell() -> None:
    assert [*drift_findings(replace(f1(), config_maps={}), {}, {})] == []
