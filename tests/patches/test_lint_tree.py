"""Linting whole directories: every target and layer, broken and ignored files."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from garboard.documents import Json, read_yaml
from garboard.model import SUPPORTED_VERSIONS, KubernetesVersion
from garboard.patches import AssumedDocuments, Finding, NodeFacts, PatchChecks, PatchFile, Severity, lint_tree
from garboard.schema import load_schema

VECTORS = Path(__file__).parent.parent / "vectors" / "patches"
EXAMPLES = Path(__file__).parents[2] / "examples" / "patches" / "manifests"
V1_36, V1_37 = SUPPORTED_VERSIONS[:2]
MARKED = {"garboard.yaml": ""}


def lint(
    files: dict[str, str],
    *,
    version: KubernetesVersion = V1_37,
    node: NodeFacts | None = None,
    originals: Sequence[Json] | AssumedDocuments = (),
) -> list[Finding]:
    found = [PatchFile(name, f"patches/{name}", lambda text=text: text.encode()) for name, text in files.items()]  # type: ignore[misc]
    return lint_tree(found, PatchChecks(load_schema(version)), node or NodeFacts(), originals)


def told(findings: list[Finding]) -> list[tuple[str, str]]:
    return [(each.where.removeprefix("patches/"), each.error_class) for each in findings]


def test_each_file_is_checked_against_the_type_of_its_target() -> None:
    files = {
        "kube-apiserver.yaml": "spec: {nodeNam: a}",
        "kubeletconfiguration.yaml": "maxPod: 5",
        "corednsdeployment.yaml": "spec: {replica: 5}",
        "etcd.yaml": "spec: {nodeName: a}",
    }
    assert told(lint(files)) == [
        ("corednsdeployment.yaml:1:8", "unknown-field"),
        ("kube-apiserver.yaml:1:8", "unknown-field"),
        ("kubeletconfiguration.yaml:1:1", "unknown-field"),
    ]


def test_second_document_has_the_line_of_its_file() -> None:
    assert told(lint({"etcd.yaml": "spec: {nodeName: a}\n---\nspec:\n  nodeNam: b\n"})) == [
        ("etcd.yaml:4:3", "unknown-field")
    ]


def test_broken_file_is_reported_at_its_place_beside_the_others() -> None:
    files = {"etcd.yaml": "spec: a: b", "kube-scheduler.yaml": "spek: {}", "kube-scheduler+Json.yaml": "[]"}
    assert told(lint(files)) == [
        ("etcd.yaml:1:8", "bad-document"),
        ("kube-scheduler+Json.yaml:1:1", "bad-file-name"),
        ("kube-scheduler.yaml:1:1", "unknown-field"),
    ]


@pytest.mark.parametrize(
    ("name", "rule", "severity", "hint"),
    [
        pytest.param("kube-apisever.yaml", "unknown-target", "error", "did you mean 'kube-apiserver'?", id="misspelt"),
        pytest.param("kubeproxydaemonset.yaml", "unknown-target", "error", "Kubernetes 1.37 has it", id="later minor"),
        pytest.param("etcd.yml", "ignored-file", "error", "rename it to end in .yaml or .json", id="other extension"),
        pytest.param("values.yaml", "ignored-file", "warning", None, id="something else"),
    ],
)
def test_ignored_file_is_reported(name: str, rule: str, severity: str, hint: str | None) -> None:
    [finding] = lint({name: "spec: {}"}, version=V1_36)
    assert (finding.error_class, finding.severity, finding.hint) == (rule, Severity(severity), hint)


def test_files_that_are_no_manifests_are_passed_over() -> None:
    assert lint({"README.md": "# Patches", ".gitkeep": ""}) == []


def test_all_layers_are_checked_unless_a_node_is_named() -> None:
    files = MARKED | {
        "common/etcd.yaml": "a: 1",
        "role/worker/etcd.yaml": "b: 1",
        "role/control-plane/etcd.yaml": "c: 1",
        "node/n1/etcd+args.yaml": "- d",
    }
    everywhere = [where for where, _ in told(lint(files))]
    assert everywhere == [
        "common/etcd.yaml:1:1", "node/n1/etcd+args.yaml:1:1", "role/control-plane/etcd.yaml:1:1",
        "role/worker/etcd.yaml:1:1",
    ]  # fmt: skip
    assert [where for where, _ in told(lint(files, node=NodeFacts(role="worker")))] == [
        "common/etcd.yaml:1:1", "role/worker/etcd.yaml:1:1",
    ]  # fmt: skip


def test_layer_that_overrides_another_is_told_with_both_places() -> None:
    files = MARKED | {"common/etcd.yaml": "spec: {priority: 1}", "node/n1/etcd.yaml": "spec: {priority: 2}"}
    [finding] = lint(files)
    assert told([finding]) == [("node/n1/etcd.yaml:1:8", "overlapping-patches")]
    assert [each.where for each in finding.related] == ["patches/common/etcd.yaml:1:8"]
    assert "this one is applied later and wins" in finding.message
    assert finding.hint == "fine if the later folder is meant to win; if not, say it in one place"


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        pytest.param("role/workers/etcd.yaml", "rename the folder to role/worker", id="misspelt role"),
        pytest.param("role/database/etcd.yaml", "the roles are control-plane, worker", id="no role at all"),
        pytest.param("role/etcd.yaml", "move the file into role/NAME/", id="no folder"),
        pytest.param("commmon/etcd.yaml", "rename the folder to common", id="misspelt common"),
        pytest.param("roles/worker/etcd.yaml", "rename the folder to role", id="several roles"),
        pytest.param("worker/etcd.yaml", "rename the folder to role/worker", id="a role that is not in its folder"),
        pytest.param("node/CP1/etcd.yaml", "names of nodes are lower case", id="no name of a node"),
    ],
)
def test_layer_that_can_never_apply_is_an_error_and_wins_over_nothing(path: str, hint: str) -> None:
    [finding] = lint(MARKED | {"common/etcd.yaml": "spec: {priority: 1}", path: "spec: {priority: 2}"})
    assert told([finding]) == [(f"{path}:1:1", "unknown-layer")]
    assert (finding.severity, finding.hint) == (Severity.ERROR, hint)


def test_file_outside_any_layer_is_reported_once() -> None:
    files = MARKED | {"examples/etcd.yaml": "spec: {}", "role/worker/etcd.yaml": "", "node/a/etcd.yaml": ""}
    assert ("examples/etcd.yaml:1:1", "ignored-file") in told(lint(files))
    assert len(lint(files)) == 3


def test_patches_are_tried_on_the_original_of_their_target() -> None:
    original = read_yaml((VECTORS / "kubeadm-base" / "kube-apiserver.yaml").read_bytes(), source="base")
    files = {"kube-apiserver.yaml": "spec: {nodeName: null}", "etcd.yaml": "spec: {nodeName: null}"}
    assert told(lint(files, originals=[original])) == [
        ("kube-apiserver.yaml:1:1", "no-change"),
        ("kube-apiserver.yaml:1:8", "zero-match"),
    ]


ODD_DIRECTORIES = {
    "yml-extension-ignored": {"ignored-file"},
    "unknown-target-ignored": {"ignored-file"},
    "empty-file-ignored": {"ignored-file"},
    "unknown-field-dropped": {"unknown-field"},
    "kind-change-drops-patches": {"kind-change"},
    "kubelet-merge-types": {"unknown-field", "unknown-feature-gate"},
    "explicit-types-in-name-order": {"overlapping-patches"},
    "lexical-not-numeric-order": {"overlapping-patches"},
    "multi-document": {"overlapping-patches"},
}


ACCEPTED = [
    pytest.param(each, id=each["name"])
    for each in json.loads((VECTORS / "kubeadm.json").read_text())["vectors"]
    if "error" not in each
]


@pytest.mark.parametrize("vector", ACCEPTED)
def test_directory_that_kubeadm_accepts_has_findings_only_where_it_surprises(vector: dict[str, Any]) -> None:
    findings = lint(vector["files"], version=V1_36)
    assert {each.error_class for each in findings} == ODD_DIRECTORIES.get(vector["name"], set())


VOLUME = "spec: {volumes: [{name: audit, hostPath: {path: /var/log/audit, type: DirectoryOrCreate}}]}"
SECOND_SOURCE = "spec: {volumes: [{name: audit, emptyDir: {}}]}"
MOUNT = "spec: {containers: [{name: etcd, volumeMounts: [{name: audit, mountPath: /var/log/audit}]}]}"


@pytest.fixture
def etcd() -> Json:
    return read_yaml((EXAMPLES / "etcd.yaml").read_bytes(), source="etcd")


@pytest.fixture
def kubelet() -> Json:
    return {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}


def test_layers_of_role_and_node_are_tried_together(etcd: Json) -> None:
    files = MARKED | {"role/control-plane/etcd.yaml": VOLUME, "node/cp1/etcd.yaml": MOUNT}
    assert lint(files, originals=[etcd]) == []
    assert lint(files, node=NodeFacts("cp1", "control-plane"), originals=[etcd]) == []
    files["node/cp1/etcd.yaml"] = SECOND_SOURCE
    assert [(each.file, each.error_class) for each in lint(files, originals=[etcd])] == [
        ("patches/node/cp1/etcd.yaml", "several-sources")
    ]


def test_assumed_documents_are_tried_with_role_and_node_together(etcd: Json) -> None:
    assumed = AssumedDocuments((etcd,))
    files = MARKED | {"role/control-plane/etcd.yaml": VOLUME, "role/worker/etcd.yaml": MOUNT}
    assert lint(files | {"node/cp1/etcd.yaml": MOUNT}, originals=assumed) == []
    assert assumed.unjudged == [
        "patches/role/worker/etcd.yaml: the result is not judged: such a node has no etcd"
    ]  # those that a control plane has as well are judged


def test_finding_of_a_node_whose_role_is_open_is_a_warning(kubelet: Json) -> None:
    files = MARKED | {
        "role/worker/kubeletconfiguration.yaml": "evictionSoftGracePeriod: {memory.available: 1m}",
        "node/w1/kubeletconfiguration.yaml": "evictionSoft: {memory.available: 500Mi}",
    }
    [finding] = lint(files, originals=[kubelet])
    assert (finding.error_class, finding.severity) == ("required-field", Severity.WARNING)
    assert finding.hint == "it is so if w1 has the role control-plane; --node w1 with --role tells which one it has"
    assert lint(files, originals=[kubelet], node=NodeFacts("w1", "worker")) == []
    files["node/w1/kubeletconfiguration.yaml"] = "evictionSoft: {nodefs.available: 10%}"  # wrong, whatever it is
    [finding] = lint(files, originals=[kubelet])
    assert finding.severity is Severity.ERROR


def test_node_of_the_configuration_has_its_documents_and_others_are_assumed(etcd: Json) -> None:
    nothing = "spec: {hostNetwork: true}"
    files = MARKED | {f"node/{name}/etcd.yaml": nothing for name in ("cp1", "cp2")}
    found = [PatchFile(name, name, lambda text=text: text.encode()) for name, text in files.items()]  # type: ignore[misc]
    checks = PatchChecks(load_schema(V1_37))
    facts = NodeFacts("cp1", "control-plane")
    findings = lint_tree(found, checks, facts, [etcd], AssumedDocuments((etcd,)))
    assert told(findings) == [("node/cp1/etcd.yaml:1:1", "no-change")]
