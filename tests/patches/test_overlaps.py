"""Two patches that write one field, found by applying them."""

import pytest

from garboard.documents import Json
from garboard.model import DEFAULT_VERSION
from garboard.patches import Finding, Patch, PatchSubject, PatchType, Severity, SourceText, apply_patches
from garboard.patches.overlaps import find_overlaps
from garboard.schema import load_schema

POD = load_schema(DEFAULT_VERSION).find_kind("Pod").type
Texts = tuple[tuple[str, str], ...]


def pod() -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "etcd", "labels": {"a": "1"}, "finalizers": ["x"]},
        "spec": {"containers": [{"name": "etcd", "command": ["etcd", "--a=1", "--b=1"]}], "priority": 1},
    }


def overlaps(*texts: tuple[str, str]) -> list[Finding]:
    patches = [
        Patch.from_yaml(SourceText(f"{number}.yaml", text), PatchType(type_))
        for number, (type_, text) in enumerate(texts, start=1)
    ]
    return find_overlaps(apply_patches(pod(), patches, PatchSubject(POD), is_traced=True))


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param((("strategic", "spec: {priority: 2}"),), id="one patch alone"),
        pytest.param((("strategic", "spec: {priority: 2}"), ("strategic", "spec: {nodeName: a}")), id="two fields"),
        pytest.param(
            (("strategic", "spec: {affinity: {nodeAffinity: {}}}"), ("merge", "spec: {affinity: {podAffinity: {}}}")),
            id="two members of a map that the first brought",
        ),
        pytest.param(
            (("args", "a: 2"), ("json", "- {op: add, path: /spec/containers/0/command/-, value: --c=1}")),
            id="two words of a command",
        ),
        pytest.param(
            (
                ("strategic", "apiVersion: v1\nkind: Pod\nmetadata: {name: etcd}\nspec: {priority: 2}"),
                ("strategic", "apiVersion: v1\nkind: Pod\nmetadata: {name: etcd}\nspec: {nodeName: a}"),
            ),
            id="both name the object",
        ),
        pytest.param(
            (("strategic", "spec: {volumes: [{name: a}]}"), ("strategic", "spec: {volumes: [{name: b}]}")),
            id="two elements",
        ),
    ],
)
def test_patches_that_share_no_field_do_not_overlap(texts: Texts) -> None:
    assert overlaps(*texts) == []


@pytest.mark.parametrize(
    ("texts", "winner", "loser", "what"),
    [
        pytest.param(
            (("strategic", "spec: {priority: 2}"), ("merge", "spec:\n  priority: 3")),
            "2.yaml:2:3", "1.yaml:1:8", "sets", id="a scalar set twice",
        ),
        pytest.param(
            (("strategic", "spec: {priority: 2}"), ("strategic", "spec: {priority: 2}")),
            "2.yaml:1:8", "1.yaml:1:8", "both say the same", id="a scalar set to the same",
        ),
        pytest.param(
            (("strategic", "spec: {nodeName: a}"), ("merge", "spec: {nodeName: null}")),
            "2.yaml:1:8", "1.yaml:1:8", "removes", id="set, then removed",
        ),
        pytest.param(
            (("strategic", "spec: {affinity: {nodeAffinity: {}}}"), ("merge", "spec: {affinity: null}")),
            "2.yaml:1:8", "1.yaml:1:8", "removes", id="a map that the first brought is removed",
        ),
        pytest.param(
            (("strategic", "spec: {dnsConfig: {searches: [a]}}"), ("merge", "spec: {dnsConfig: {searches: [b]}}")),
            "2.yaml:1:20", "1.yaml:1:20", "sets", id="inside a map that the first brought",
        ),
        pytest.param(
            (("merge", "metadata: {labels: {b: x}}"), ("strategic", "metadata: {labels: {$patch: replace, c: y}}")),
            "2.yaml:1:12", "1.yaml:1:21", "sets", id="a map that the first changed is replaced",
        ),
        pytest.param(
            (("args", "a: 2"), ("args", "b: 5\na: 3")), "2.yaml:2:1", "1.yaml:1:1", "wins", id="one flag set twice"
        ),
        pytest.param(
            (
                ("strategic", "spec: {containers: [{name: etcd, image: a}]}"),
                ("strategic", "spec: {containers: [{name: etcd, image: b}]}"),
            ),
            "2.yaml:1:34", "1.yaml:1:34", "sets", id="a field of a list element",
        ),
        pytest.param(
            (
                ("strategic", "spec: {volumes: [{name: a, emptyDir: {}}]}"),
                ("strategic", "spec: {volumes: [{name: a, $patch: delete}]}"),
            ),
            "2.yaml:1:18", "1.yaml:1:8", "removes", id="an element that the first brought is deleted",
        ),
    ],
)  # fmt: skip
def test_overlap_names_the_winner_and_the_place_of_the_other(texts: Texts, winner: str, loser: str, what: str) -> None:
    [finding] = overlaps(*texts)
    assert (finding.where, finding.severity) == (winner, Severity.WARNING)
    assert [each.where for each in finding.related] == [loser]
    assert loser in finding.message
    assert what in finding.message
