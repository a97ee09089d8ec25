"""What explain says, on a patched static Pod."""

import json
from typing import Any

import pytest

from garboard.documents import read_yaml
from garboard.model import DEFAULT_VERSION
from garboard.patches import (
    FieldPath,
    OriginKind,
    Origins,
    Patch,
    PatchType,
    Source,
    TextBase,
    apply_watched,
    explain_text,
    history_as_json,
)
from garboard.patches.taking import copy_of
from garboard.schema import load_schema

POD = load_schema(DEFAULT_VERSION).find_kind("Pod").type
BASE = """\
apiVersion: v1
kind: Pod
metadata:
  labels: {tier: a}
spec:
  containers:
  - name: web
    image: web:1
    command: [web, --profiling=true, --v=2]
    env:
    - name: TZ
      value: UTC
"""


def origins(*patches: tuple[str, str]) -> Origins:
    run = [
        Patch.from_yaml(Source(f"p{number}.yaml", text), PatchType(type_))
        for number, (type_, text) in enumerate(patches, start=1)
    ]
    base = read_yaml(BASE, source="base.yaml")
    return Origins(apply_watched(copy_of(base), run, POD), TextBase(Source("base.yaml", BASE)))


def told(field: str, *patches: tuple[str, str]) -> list[str]:
    return explain_text(field, origins(*patches).history(FieldPath.parse(field))).splitlines()


def test_untouched_field_comes_from_its_line_of_the_base() -> None:
    assert told("spec.containers[web].image") == [
        'spec.containers[web].image: "web:1"',
        "  set by base.yaml:8:5 (base)",
    ]


def test_last_patch_wins_and_what_it_overrode_is_told() -> None:
    first = ("merge", "metadata: {labels: {tier: b}}\n")
    second = ("strategic", "metadata:\n  labels:\n    tier: c\n")
    assert told("metadata.labels.tier", first, second) == [
        'metadata.labels.tier: "c"',
        '  set by p2.yaml:3:5 (strategic patch), over "b"',
        '  was "b", set by p1.yaml:1:21 (merge patch), over "a"',
        '  was "a", set by base.yaml:4:12 (base)',
    ]


def test_two_patches_that_say_the_same_are_both_told() -> None:
    patch = ("merge", "spec: {nodeName: n}\n")
    lines = told("spec.nodeName", patch, patch)
    assert lines[1].startswith("  set to the same by p2.yaml:1:8")
    assert lines[2].startswith("  set by p1.yaml:1:8")


def test_removed_field_names_the_patch_that_removed_it() -> None:
    assert told("metadata.labels.tier", ("merge", "metadata: {labels: null}\n")) == [
        "metadata.labels.tier: not there",
        '  removed by p1.yaml:1:12 (merge patch), over "a"',
        '  was "a", set by base.yaml:4:12 (base)',
    ]


def test_removed_list_element_names_the_directive() -> None:
    patch = ("strategic", "spec:\n  containers:\n  - name: web\n    env:\n    - name: TZ\n      $patch: delete\n")
    lines = told("spec.containers[web].env[TZ].value", patch)
    assert lines[0].endswith("not there")
    assert "removed by p1.yaml:5:7 (strategic patch)" in lines[1]


@pytest.mark.parametrize(
    ("patch", "line"),
    [
        pytest.param(
            ("args", "v: 4\nprofiling: false\n"),
            'set by p1.yaml:2:1 (args patch), over "--profiling=true"',
            id="args",
        ),
        pytest.param(
            ("json", "- op: replace\n  path: /spec/containers/0/command/1\n  value: --profiling=false\n"),
            'set by p1.yaml:3:3 (json patch), over "--profiling=true"',
            id="json",
        ),
    ],
)
def test_flag_is_told_by_name_although_positions_may_shift(patch: tuple[str, str], line: str) -> None:
    shift = ("json", "- op: add\n  path: /spec/containers/0/command/1\n  value: --first=1\n")
    lines = told("spec.containers[web].command[--profiling]", patch, shift)
    assert lines[1].strip() == line


def test_untouched_flag_keeps_its_line_when_another_was_put_before_it() -> None:
    shift = ("json", "- op: add\n  path: /spec/containers/0/command/1\n  value: --first=1\n")
    assert told("spec.containers[web].command[--v]", shift)[1] == "  set by base.yaml:9:38 (base)"


def test_json_form_has_every_event_with_its_place() -> None:
    patched = origins(("merge", "metadata: {labels: {tier: b}}\n"))
    data: Any = history_as_json("metadata.labels.tier", patched.history(FieldPath.parse("metadata.labels.tier")))
    assert data["causedBy"] == "p1.yaml"
    assert data["origin"] == {
        "kind": "patch",
        "file": "p1.yaml",
        "line": 1,
        "column": 21,
        "type": "merge",
        "document": 1,
    }
    assert [event["after"] for event in data["events"]] == ["a", "b"]
    json.dumps(data)


def test_element_of_a_list_comes_from_the_patch_that_brought_it() -> None:
    patch = ("strategic", "spec:\n  containers:\n  - name: side\n    image: x\n")
    assert told("spec.containers[side]", patch)[1] == "  set by p1.yaml:3:5 (strategic patch)"
    assert told("spec.containers[web]", patch)[1] == "  set by base.yaml:7:5 (base)"


def test_all_patched_fields_are_listed_without_the_untouched() -> None:
    names = [name for name, _ in origins(("merge", "metadata: {labels: {x: b}}\n")).fields_by(OriginKind.PATCH)]
    assert names == ["metadata.labels.x"]


def test_enabler_is_not_named_only_the_writer() -> None:
    """The documented limit: a patch that creates the map decides whether `$patch: replace` works, and is not named."""
    maker = ("merge", "metadata: {annotations: {}}\n")
    writer = ("strategic", 'metadata: {annotations: {$patch: replace, a: "1"}}\n')
    history = origins(maker, writer).history(FieldPath.parse("metadata.annotations.a"))
    assert history.cause is not None
    assert history.cause.source.name == "p2.yaml"
    assert origins(writer).history(FieldPath.parse("metadata.annotations.a")).events == ()


def test_null_in_a_new_element_stays_only_if_the_list_is_there_and_names_the_writer_alone() -> None:
    """The other shape of the same limit: the patch that makes the list decides whether the null stays."""
    field = FieldPath.parse("spec.initContainers[x].image")
    maker = ("merge", "spec: {initContainers: []}\n")
    writer = ("strategic", "spec:\n  initContainers:\n  - name: x\n    image: null\n")
    history = origins(maker, writer).history(field)
    assert history.value is None
    assert history.cause is not None
    assert history.cause.source.name == "p2.yaml"
    assert origins(writer).history(field).path is None
