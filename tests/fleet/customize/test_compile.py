"""What is wrong with a customization before anything is there to apply it to, all of it at once."""

import pytest

from garboard.fleet import CustomizationFailed
from garboard.fleet.customize import compile_customization
from garboard.fleet.documents import ObjectKey
from tests.support.fleet.pool import customization, documents_of

MANIFEST = "installerManifestPatches: [{{manifestSelector: {{kind: X}}, {}}}]"


def told(spec: str) -> str:
    written = documents_of(customization("site", spec)).customizations[ObjectKey("default", "site")]
    with pytest.raises(CustomizationFailed) as raised:
        compile_customization(written)
    return raised.value.message


@pytest.mark.parametrize(
    ("patches", "words"),
    [
        pytest.param("[{op: add, path: a/b}]", "op 0: 'a/b' does not begin with /", id="no leading slash"),
        pytest.param("[{op: add, path: /a~2}]", "a ~ that is neither ~0 nor ~1", id="tilde"),
        pytest.param("[{op: remove, path: /a}, {op: move, path: /b}]", "op 1: move needs from", id="no from"),
        pytest.param("[{op: copy, from: a, path: /b}]", "'a' does not begin with /", id="from"),
        pytest.param("[{op: add, path: /a, valueJSON: '{'}]", "not JSON", id="valueJSON"),
        pytest.param("[{op: add, path: /a, valueJSON: 'NaN'}]", "not JSON", id="NaN"),
    ],
)
def test_operation_that_no_document_can_take_is_refused(patches: str, words: str) -> None:
    assert words in told(f"installConfigPatches: {patches}")
    assert words in told(MANIFEST.format(f"patches: {patches}"))


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        pytest.param("type: merge", "one of patches and patch", id="neither"),
        pytest.param("patches: [], patch: '[]'", "one of patches and patch", id="both"),
        pytest.param("type: merge, patches: []", "a merge patch stands in patch", id="operations of another type"),
        pytest.param("type: merge, patch: '[]'", "a merge patch is a mapping", id="a list"),
        pytest.param("type: json, patch: 'a: b'", "a json patch is a list of operations", id="a mapping"),
        pytest.param("type: json, patch: [{op: add}]", "op 0: add needs path and value", id="incomplete"),
        pytest.param("type: json, patch: [{op: sub}]", "op is one of add", id="unknown"),
        pytest.param("type: json, patch: [x]", "an operation is a mapping", id="text"),
        pytest.param("type: json, patch: [{op: remove, path: 3}]", "a pointer is text", id="number"),
        pytest.param("type: merge, patch: 'a: ['", "did not find expected node content", id="no YAML"),
    ],
)
def test_entry_that_contradicts_itself_is_refused(entry: str, words: str) -> None:
    assert words in told(MANIFEST.format(entry))


@pytest.mark.parametrize(
    ("selector", "words"),
    [
        pytest.param("{}", "it selects nothing", id="nothing"),
        pytest.param("{glob: ''}", "it selects nothing", id="empty glob"),
        pytest.param("{labelSelector: 'a in'}", "not a label selector", id="labels"),
        pytest.param('{glob: "a\\0b"}', "NUL", id="NUL"),
        pytest.param("{glob: '[a'}", "not a pattern of Go's filepath.Glob", id="glob"),
    ],
)
def test_selector_that_cannot_be_used_is_refused(selector: str, words: str) -> None:
    assert words in told(f"installerManifestPatches: [{{manifestSelector: {selector}, patches: []}}]")


def test_group_of_core_objects_is_a_selector() -> None:
    spec = "installerManifestPatches: [{manifestSelector: {group: ''}, patches: []}]"
    written = documents_of(customization("site", spec)).customizations[ObjectKey("default", "site")]
    content = compile_customization(written).manifests[0].match.content
    assert content is not None
    assert content.matches({"apiVersion": "v1", "kind": "Secret"})
    assert not content.matches({"apiVersion": "apps/v1", "kind": "Deployment"})


def test_all_that_is_wrong_is_told_with_its_lines() -> None:
    found = told(
        "installConfigPatches:\n- {op: add, path: x}\n- {op: add, path: /a, valueJSON: '['}\n"
        "installerManifestPatches:\n- manifestSelector: {glob: ../x}\n  patches:\n  - {op: move, path: /a}\n"
    )
    places = [line.strip().removeprefix("also ").partition(": ")[0] for line in found.splitlines()]
    assert [each.split(":")[1] for each in places] == ["6", "7", "9", "11"]
