"""Two patches that write one field, told from the patches alone."""

import pytest

from garboard.model import DEFAULT_VERSION
from garboard.patches import Finding, Patch, PatchType, SourceText
from garboard.patches.static_overlaps import find_static_overlaps
from garboard.schema import load_schema

POD = load_schema(DEFAULT_VERSION).find_kind("Pod").type
Texts = tuple[tuple[str, str], ...]


def overlaps(*texts: tuple[str, str]) -> list[Finding]:
    patches = [
        Patch.from_yaml(SourceText(f"{number}.yaml", text), PatchType(type_))
        for number, (type_, text) in enumerate(texts, start=1)
    ]
    return find_static_overlaps(patches, POD)


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param((("strategic", "spec: {priority: 2}"), ("strategic", "spec: {nodeName: a}")), id="two fields"),
        pytest.param((("strategic", "kind: Pod"), ("strategic", "kind: Pod")), id="both name the kind"),
        pytest.param(
            (
                ("strategic", "spec: {volumes: [{name: a, emptyDir: {}}]}"),
                ("strategic", "spec: {volumes: [{name: b, emptyDir: {}}]}"),
            ),
            id="two elements",
        ),
        pytest.param(
            (("strategic", "metadata: {finalizers: [a]}"), ("strategic", "metadata: {finalizers: [b]}")), id="a set"
        ),
        pytest.param(
            (
                ("json", "- {op: add, path: /spec/containers/0/command/-, value: a}"),
                ("json", "- {op: add, path: /spec/containers/0/command/-, value: b}"),
            ),
            id="two additions to a list",
        ),
        pytest.param(
            (("json", "- {op: test, path: /spec/priority, value: 1}"), ("merge", "spec: {priority: 1}")), id="a test"
        ),
        pytest.param((("args", "a: 1"), ("args", "b: 1")), id="two flags"),
        pytest.param((("strategic", "[]"), ("json", "{}"), ("args", "x")), id="documents that are no patches"),
    ],
)
def test_patches_that_share_no_field_do_not_overlap(texts: Texts) -> None:
    assert overlaps(*texts) == []


@pytest.mark.parametrize(
    ("texts", "winner", "loser", "what"),
    [
        pytest.param(
            (("strategic", "spec: {priority: 2}"), ("merge", "spec: {priority: 3}")),
            "2.yaml:1:8", "1.yaml:1:8", "sets", id="a scalar",
        ),
        pytest.param(
            (("strategic", "spec: {priority: 2}"), ("json", "- {op: replace, path: /spec/priority, value: 2}")),
            "2.yaml:1:17", "1.yaml:1:8", "both say the same", id="the same by another type of patch",
        ),
        pytest.param(
            (("strategic", "spec: {tolerations: []}"), ("strategic", "spec: {tolerations: [{key: a}]}")),
            "2.yaml:1:8", "1.yaml:1:8", "sets", id="a list that is replaced whole",
        ),
        pytest.param(
            (
                ("strategic", "spec: {containers: [{name: a, image: x}]}"),
                ("strategic", "spec: {containers: [{name: b, image: y}, {name: a, image: z}]}"),
            ),
            "2.yaml:1:52", "1.yaml:1:31", "sets", id="a field of one element",
        ),
        pytest.param(
            (("strategic", "spec: {securityContext: {fsGroup: 1}}"), ("merge", "spec: {securityContext: null}")),
            "2.yaml:1:8", "1.yaml:1:26", "removes", id="a map removed that was written to",
        ),
        pytest.param(
            (("merge", "spec: {securityContext: null}"), ("merge", "spec: {securityContext: {fsGroup: 1}}")),
            "2.yaml:1:26", "1.yaml:1:8", "sets", id="a map written to that was removed",
        ),
        pytest.param(
            (
                ("strategic", "spec: {volumes: [{name: a, emptyDir: {medium: x}}]}"),
                ("strategic", "spec: {volumes: [{name: a, $patch: delete}]}"),
            ),
            "2.yaml:1:18", "1.yaml:1:39", "removes", id="an element deleted that was written to",
        ),
        pytest.param((("args", "a: 1"), ("args", "--a: 2")), "2.yaml:1:1", "1.yaml:1:1", "--a is written", id="a flag"),
        pytest.param(
            (
                ("json", "- {op: remove, path: /metadata/labels/a~1b}"),
                ("merge", "metadata: {labels: {a/b: c}}"),
            ),
            "2.yaml:1:21", "1.yaml:1:16", "sets", id="a label by its pointer",
        ),
    ],
)  # fmt: skip
def test_overlap_names_the_winner_and_the_place_of_the_other(texts: Texts, winner: str, loser: str, what: str) -> None:
    [finding] = overlaps(*texts)
    assert finding.where == winner
    assert [each.where for each in finding.related] == [loser]
    assert what in finding.message


def test_of_three_writers_each_later_one_is_told_of_the_one_before() -> None:
    texts = [("merge", f"spec: {{priority: {number}}}") for number in range(3)]
    assert [(each.file, each.related[0].file) for each in overlaps(*texts)] == [
        ("2.yaml", "1.yaml"),
        ("3.yaml", "2.yaml"),
    ]
