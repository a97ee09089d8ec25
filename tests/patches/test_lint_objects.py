"""Linting patch sets for any objects."""

from collections.abc import Sequence
from typing import Any

from garboard.documents import Json
from garboard.model import DEFAULT_VERSION
from garboard.patches import Finding, PatchChecks, findings_as_sarif, lint_objects, read_patch_set
from garboard.schema import load_schema

SET = """\
patches:
- {target: {kind: Deployment, name: web}, file: replicas.yaml}
- {target: {kind: Deployment, name: web}, file: image.yaml}
- {target: {kind: Widget}, type: merge, file: widget.yaml}
"""
FILES = {"replicas.yaml": "spec: {replicas: 3}", "image.yaml": "spec: {paused: true}", "widget.yaml": "spec: {any: 1}"}


def deployment(name: str) -> Json:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {"replicas": 1}}


def lint(files: dict[str, str], originals: Sequence[Json] = ()) -> list[tuple[str, str]]:
    patches = read_patch_set(SET.encode(), source="set.yaml", load=lambda name: (FILES | files)[name].encode())
    checks = PatchChecks(load_schema(DEFAULT_VERSION))
    found: list[Finding] = lint_objects(patches, checks, source="set.yaml", originals=originals)
    return [(each.where, each.error_class) for each in found]


def test_entries_are_checked_by_the_kind_they_select() -> None:
    assert lint({}) == []
    assert lint({"image.yaml": "spec: {replica: 1}", "widget.yaml": "spec: {replica: 1}"}) == [
        ("image.yaml:1:8", "unknown-field")
    ]


def test_entries_with_one_selection_may_overlap() -> None:
    assert lint({"image.yaml": "spec: {replicas: 5}"}) == [("image.yaml:1:8", "overlapping-patches")]


def test_entry_that_selects_no_object_is_found_and_still_checked() -> None:
    widget: Json = {"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": "w"}}
    assert lint({}, [deployment("web"), widget]) == []
    assert lint({"replicas.yaml": "spec: {replica: 3}"}, [deployment("other"), widget]) == [
        ("replicas.yaml:1:8", "unknown-field"),
        ("set.yaml:2:3", "zero-match"),
        ("set.yaml:3:3", "zero-match"),
    ]


def test_patches_are_tried_on_the_objects_they_select() -> None:
    objects: list[Json] = [deployment("web"), {"apiVersion": "example.org/v1", "kind": "Widget"}]
    assert lint({"image.yaml": "spec: {paused: null}"}, objects) == [
        ("image.yaml:1:1", "no-change"),
        ("image.yaml:1:8", "zero-match"),
    ]


def read(text: str, source: str = "sets/web.yaml") -> list[Finding]:
    patches = read_patch_set(text.encode(), source=source, load=lambda _: b"spec: {replica: 3}\n")
    return lint_objects(patches, PatchChecks(load_schema(DEFAULT_VERSION)), source=source)


def test_finding_has_the_path_of_the_file_as_seen_from_here() -> None:
    [finding] = read("patches:\n- {target: {kind: Deployment}, file: sub/replicas.yaml}\n")
    assert finding.where == "sets/sub/replicas.yaml:1:8"
    log: Any = findings_as_sarif([finding], tool_version="1")
    place = log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place == {"uri": "sets/sub/replicas.yaml", "uriBaseId": "%SRCROOT%"}


def test_misspelt_kind_is_found_with_the_kind_that_was_meant() -> None:
    [finding] = read("patches:\n- target: {kind: Deploymnt}\n  file: web.yaml\n")
    assert (finding.where, finding.error_class) == ("sets/web.yaml:2:12", "unknown-kind")
    assert finding.hint == "did you mean 'Deployment'?"


def test_kind_of_a_custom_resource_that_is_given_is_no_misspelling() -> None:
    patches = read_patch_set(
        b"patches:\n- {target: {kind: Deploymint}, type: merge, file: a.yaml}\n",
        source="set.yaml",
        load=lambda _: b"spec: {a: 1}\n",
    )
    objects: list[Json] = [{"apiVersion": "example.org/v1", "kind": "Deploymint"}]
    assert lint_objects(patches, PatchChecks(load_schema(DEFAULT_VERSION)), source="set.yaml", originals=objects) == []


def test_inline_patch_has_findings_at_its_lines_of_the_patch_set() -> None:
    text = "patches:\n- target: {kind: Deployment}\n  patch: |\n    spec:\n      replica: 3\n"
    [finding] = read(text)
    assert (finding.where, finding.error_class) == ("sets/web.yaml:5:7", "unknown-field")


def test_inline_patch_on_one_line_has_findings_at_that_line() -> None:
    [finding] = read('patches:\n- target: {kind: Deployment}\n  patch: "spec: {replica: 3}"\n')
    assert (finding.file, finding.position.line) == ("sets/web.yaml", 3)
