"""Linting whole directories: every target and layer, broken and ignored files."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from garboard.documents import Json, read_yaml
from garboard.model import SUPPORTED_VERSIONS, KubernetesVersion
from garboard.patches import Finding, NodeFacts, PatchChecks, PatchFile, Severity, lint_tree
from garboard.schema import load_schema

VECTORS = Path(__file__).parent.parent / "vectors" / "patches"
V1_36, V1_37 = SUPPORTED_VERSIONS
MARKED = {"garboard.yaml": ""}


def lint(
    files: dict[str, str],
    *,
    version: KubernetesVersion = V1_37,
    node: NodeFacts | None = None,
    originals: Sequence[Json] = (),
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


def test_file_outside_any_layer_is_reported_once() -> None:
    files = MARKED | {"commn/etcd.yaml": "spec: {}", "role/worker/etcd.yaml": "", "node/a/etcd.yaml": ""}
    assert ("commn/etcd.yaml:1:1", "ignored-file") in told(lint(files))
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
