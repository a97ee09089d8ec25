"""Linting patches with and without a document to try them on."""

import pytest

from garboard.documents import Json
from garboard.model import DEFAULT_VERSION
from garboard.patches import Finding, Patch, PatchChecks, PatchSubject, PatchType, SourceText, find_target, lint_patches
from garboard.schema import load_schema

SCHEMA = load_schema(DEFAULT_VERSION)
ETCD = find_target("etcd", DEFAULT_VERSION)


def pod(name: str = "etcd") -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"a": "1"}},
        "spec": {"containers": [{"name": "etcd", "image": "x"}], "priority": 1},
    }


def lint(*texts: tuple[str, str], originals: tuple[Json, ...] = ()) -> list[Finding]:
    patches = [
        Patch.from_yaml(SourceText(f"{number}.yaml", text), PatchType(type_))
        for number, (type_, text) in enumerate(texts, start=1)
    ]
    return lint_patches(patches, PatchSubject.of_target(ETCD, SCHEMA), PatchChecks(SCHEMA), originals)


def told(findings: list[Finding]) -> list[tuple[str, str]]:
    return [(each.where, each.error_class) for each in findings]


@pytest.mark.parametrize(
    ("type_", "text", "expected"),
    [
        pytest.param("strategic", "spec: {priority: 2}", [], id="a change"),
        pytest.param("strategic", "spec: {priority: 1}", [("1.yaml:1:1", "no-change")], id="no change"),
        pytest.param(
            "strategic",
            "spec: {nodeName: null, priority: 2}",
            [("1.yaml:1:8", "zero-match")],
            id="removal of what is not there",
        ),
        pytest.param(
            "strategic",
            "spec: {securityContext: {$retainKeys: [fsGroup], fsGroup: 1}}",
            [("1.yaml:1:26", "leaked-directive")],
            id="a directive that leaks into a new map",
        ),
        pytest.param(
            "merge", "kind: Node", [("1.yaml:1:1", "kind-change")], id="another kind, told once though both notice"
        ),
        pytest.param(
            "json", "- {op: replace, path: /spec/nodeName, value: a}", [("1.yaml:1:17", "path-missing")], id="replace"
        ),
        pytest.param(
            "json",
            "- {op: test, path: /spec/priority, value: 2}",
            [("1.yaml:1:36", "test-failed")],
            id="a failing test is a finding, not an end",
        ),
        pytest.param(
            "json",
            "- {op: add, path: /spec/containrs/0/image, value: a}",
            [("1.yaml:1:25", "unknown-field")],
            id="a misspelt pointer is told once, with its nearest name",
        ),
    ],
)
def test_trying_a_patch_shows_what_it_does(type_: str, text: str, expected: list[tuple[str, str]]) -> None:
    assert told(lint((type_, text), originals=(pod(),))) == expected


def test_patch_that_fails_is_left_out_and_the_others_are_tried() -> None:
    findings = lint(
        ("json", "- {op: remove, path: /spec/nodeName}"), ("strategic", "spec: {priority: 1}"), originals=(pod(),)
    )
    assert told(findings) == [("1.yaml:1:16", "path-missing"), ("2.yaml:1:1", "no-change")]


def test_originals_of_other_targets_are_not_used() -> None:
    assert lint(("strategic", "spec: {priority: 1}"), originals=(pod("kube-scheduler"),)) == []


def test_originals_are_left_as_they_are() -> None:
    original = pod()
    lint(("strategic", "spec: {priority: 2}"), originals=(original,))
    assert original == pod()


def test_with_an_original_overlaps_are_those_that_happen() -> None:
    texts = [("strategic", f"spec: {{containers: [{{name: etcd, image: {name}}}]}}") for name in "ab"]
    [finding] = lint(*texts, originals=(pod(),))
    assert finding.message.startswith("spec.containers[name=etcd].image is written by 1.yaml:1:34 as well")
    assert told(lint(*texts)) == told([finding])
