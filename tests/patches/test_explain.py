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
    PatchSubject,
    PatchType,
    SourceText,
    TextBase,
    apply_patches,
    explain_text,
    find_target,
    history_as_json,
)
from garboard.patches.json_values import copy_of
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
        Patch.from_yaml(SourceText(f"p{number}.yaml", text), PatchType(type_))
        for number, (type_, text) in enumerate(patches, start=1)
    ]
    base = read_yaml(BASE, source="base.yaml")
    applied = apply_patches(copy_of(base), run, PatchSubject(POD), is_traced=True)
    return Origins(applied, TextBase(SourceText("base.yaml", BASE)))


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
    place = {"kind": "patch", "file": "p1.yaml", "line": 1, "column": 21, "type": "merge", "document": 1}
    assert data["origin"] == place
    assert data["causedBy"] == [{"patch": "p1.yaml", **place, "without": "a"}]
    assert [event["after"] for event in data["events"]] == ["a", "b"]
    json.dumps(data)


def test_element_of_a_list_comes_from_the_patch_that_brought_it() -> None:
    patch = ("strategic", "spec:\n  containers:\n  - name: side\n    image: x\n")
    assert told("spec.containers[side]", patch)[1] == "  set by p1.yaml:3:5 (strategic patch)"
    assert told("spec.containers[web]", patch)[1] == "  set by base.yaml:7:5 (base)"


def test_field_of_a_new_list_with_an_order_comes_from_the_patch_that_brought_it() -> None:
    patch = (
        "strategic",
        "spec:\n  $setElementOrder/initContainers: [{name: x}]\n  initContainers:\n  - name: x\n    image: i\n",
    )
    assert told("spec.initContainers[x].image", patch)[1] == "  set by p1.yaml:5:5 (strategic patch)"


def test_word_that_stays_when_its_twin_goes_keeps_its_origin() -> None:
    twins = ("merge", "metadata: {finalizers: [a, a]}\n")
    removal = ("json", "- {op: remove, path: /metadata/finalizers/0}\n")
    assert told("metadata.finalizers[0]", twins, removal) == [
        'metadata.finalizers[0]: "a"',
        "  set by p1.yaml:1:25 (merge patch)",
    ]


def test_all_patched_fields_are_listed_without_the_untouched() -> None:
    names = [name for name, _ in origins(("merge", "metadata: {labels: {x: b}}\n")).fields_by(OriginKind.PATCH)]
    assert names == ["metadata.labels.x"]


def test_taken_away_fields_are_listed_after_those_that_are_there() -> None:
    removal = ("json", "- {op: remove, path: /spec/containers/0/command/1}\n")
    patched = origins(("merge", "metadata: {labels: {tier: null, x: b}}\n"), removal)
    names = [name for name, _ in patched.fields_by(OriginKind.PATCH)]
    assert names == ["metadata.labels.x", "metadata.labels.tier", "spec.containers[name=web].command[--profiling]"]


TWO_OPERATIONS = (
    "json",
    """\
- {op: add, path: /metadata/annotations, value: {a: b}}
- {op: add, path: /spec/containers/0/resources, value: {limits: {cpu: 1}}}
- {op: replace, path: /metadata/annotations/a, value: c}
""",
)


def test_parent_names_the_operation_that_wrote_inside_it() -> None:
    lines = told("spec", TWO_OPERATIONS)
    assert lines[1] == "  set by base.yaml:5:1 (base)"
    assert lines[2].startswith(
        "  depends on p1.yaml:2:49 (json patch), which writes spec.containers[name=web].resources: without it"
    )
    assert len(lines) == 3


def test_parent_that_one_operation_made_and_another_changed_names_both() -> None:
    assert told("metadata.annotations", TWO_OPERATIONS) == [
        'metadata.annotations: {"a": "c"}',
        "  set by p1.yaml:1:42 (json patch)",
        "  with p1.yaml:3:48 (json patch), which writes metadata.annotations.a",
    ]


def test_parent_names_what_still_stands_of_a_patch_not_what_a_later_one_overrode() -> None:
    first = ("merge", "metadata: {labels: {tier: b}}\nspec: {nodeName: x}\n")
    second = ("merge", "metadata: {labels: {tier: c}}\n")
    [cause] = origins(first, second).history(FieldPath.parse("metadata")).causes
    assert [(part.name, part.origin.where) for part in cause.parts] == [("metadata.labels.tier", "p2.yaml:1:21")]


def test_changed_flag_is_one_part_of_its_command() -> None:
    patched = origins(("args", "profiling: false\nv: null\n"))
    [cause] = patched.history(FieldPath.parse("spec.containers[web]")).causes
    assert [(part.name, part.origin.where) for part in cause.parts] == [
        ("spec.containers[name=web].command[--profiling]", "p1.yaml:1:1"),
        ("spec.containers[name=web].command", "p1.yaml:2:1"),
    ]


def test_parent_of_a_removed_element_names_the_operation_that_removed_it() -> None:
    patch = (
        "json",
        "- {op: add, path: /metadata/annotations, value: {}}\n- {op: remove, path: /spec/containers/0/env/0}\n",
    )
    assert "p1.yaml:2:16" in told("spec.containers[web].env", patch)[2]
    assert told("spec.containers[web].env[TZ].value", patch)[1].startswith("  removed by p1.yaml:2:16 (json patch)")


def test_parent_of_an_element_that_was_only_moved_names_the_operation() -> None:
    first = ("json", "- {op: add, path: /spec/containers/-, value: {name: new, image: x}}\n")
    move = "- {op: move, from: /spec/containers/1, path: /spec/containers/0}\n"
    second = ("json", f"- {{op: add, path: /metadata/annotations, value: {{}}}}\n{move}")
    assert any("p2.yaml:2:3 (json patch)" in line for line in told("spec.containers", first, second))


def test_value_that_decoding_spells_anew_has_the_origin_that_wrote_it() -> None:
    subject = PatchSubject.of_target(find_target("kube-scheduler", DEFAULT_VERSION), load_schema(DEFAULT_VERSION))
    text = BASE.replace("    env:", "    resources: {requests: {cpu: 100m}}\n    env:")
    patch = "spec: {containers: [{name: web, resources: {requests: {cpu: 0.1, memory: 1024Mi}}}]}\n"
    run = [Patch.from_yaml(SourceText("p1.yaml", patch), PatchType.STRATEGIC)]
    applied = apply_patches(read_yaml(text, source="base.yaml"), run, subject, is_traced=True)
    traced = Origins(applied, TextBase(SourceText("base.yaml", text)))
    stories = {name: explain_text(name, history).splitlines() for name, history in traced.fields_by(OriginKind.PATCH)}
    assert stories["spec.containers[name=web].resources.requests.memory"] == [
        'spec.containers[name=web].resources.requests.memory: "1Gi"',
        '  set by p1.yaml:1:66 (strategic patch) as "1024Mi"',
    ]
    assert stories["spec.containers[name=web].resources.requests.cpu"][1:] == [
        '  set by p1.yaml:1:56 (strategic patch) as 0.1, over "100m"',
        '  was "100m", set by base.yaml:10:28 (base)',
    ]


MAKER = ("merge", "metadata: {annotations: {}}\n")
REPLACER = ("strategic", 'metadata: {annotations: {$patch: replace, a: "1"}}\n')


def causes(field: str, *patches: tuple[str, str]) -> list[str]:
    return [cause.patch.source.name for cause in origins(*patches).history(FieldPath.parse(field)).causes]


def test_patch_that_makes_the_map_for_another_to_write_into_is_named_with_what_it_makes() -> None:
    assert told("metadata.annotations.a", MAKER, REPLACER) == [
        'metadata.annotations.a: "1"',
        "  set by p2.yaml:1:43 (strategic patch)",
        (
            "  depends on p1.yaml:1:12 (merge patch), which writes metadata.annotations:"
            " without it this would not be there"
        ),
    ]
    assert told("metadata.annotations.a", REPLACER)[0].endswith("not there")


def test_of_two_patches_that_make_the_map_neither_decides() -> None:
    assert causes("metadata.annotations.a", MAKER, MAKER, REPLACER) == ["p3.yaml"]


def test_list_decides_whether_null_in_a_new_element_stays_so_its_maker_is_named() -> None:
    field = "spec.initContainers[x].image"
    maker = ("merge", "spec: {initContainers: []}\n")
    writer = ("strategic", "spec:\n  initContainers:\n  - name: x\n    image: null\n")
    assert told(field, maker, writer)[0] == f"{field}: null"
    assert causes(field, maker, writer) == ["p1.yaml", "p2.yaml"]
    assert told(field, writer)[0].endswith("not there")


def test_patch_without_which_another_one_fails_is_named() -> None:
    first = ("json", "- {op: add, path: /spec/containers/0, value: {name: new, image: x}}\n")
    second = ("json", "- {op: replace, path: /spec/containers/1/image, value: web:2}\n")
    assert told("spec.containers[web].image", first, second)[-1] == (
        "  depends on p1.yaml:1:39 (json patch), which writes spec.containers:"
        ' without it this would be "web:1", as p2.yaml would fail'
    )


def test_patch_that_shifts_the_element_another_one_means_is_named() -> None:
    first = ("json", "- {op: add, path: /spec/containers/-, value: {name: new, image: x}}\n")
    second = ("json", "- {op: remove, path: /spec/containers/0}\n")
    third = ("json", "- {op: replace, path: /spec/containers/0/image, value: x:2}\n")
    assert causes("spec.containers[new].image", first, second, third) == ["p1.yaml", "p2.yaml", "p3.yaml"]


@pytest.mark.parametrize(
    ("field", "patches", "named"),
    [
        pytest.param("spec.nodeName", ["merge spec: {nodeName: x}"] * 2, [], id="two say the same"),
        pytest.param("metadata.labels.tier", ["merge metadata: {labels: {tier: a}}"], [], id="the base says the same"),
        pytest.param(
            "metadata.labels.tier",
            ["merge metadata: {labels: null}", "merge metadata: {labels: {tier: a}}"],
            ["p2.yaml"],
            id="removed and put back",
        ),
        pytest.param(
            "metadata.labels.tier",
            ["merge metadata: {labels: null}", "strategic metadata: {labels: {$patch: delete}}"],
            [],
            id="two take it away",
        ),
        pytest.param(
            "spec.containers[web].command[--v]",
            ["strategic spec: {containers: [{name: web, command: [x, --v=3]}]}", "args {v: 5}"],
            ["p2.yaml"],
            id="a flag in a list that another one replaced",
        ),
        pytest.param(
            "spec.containers[web].command[--logtostderr]",
            ["args {logtostderr: true}", "strategic spec: {containers: [{name: web, command: [x]}]}"],
            ["p2.yaml"],
            id="a flag that another one took away",
        ),
    ],
)
def test_exactly_the_patches_that_decide_are_named(field: str, patches: list[str], named: list[str]) -> None:
    run = [(type_, f"{text}\n") for type_, _, text in (patch.partition(" ") for patch in patches)]
    assert causes(field, *run) == named
