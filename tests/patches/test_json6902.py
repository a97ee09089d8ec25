"""JSON patch: RFC 6902 where the reference keeps to it, and remarks wherever it is more lenient."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from garboard.documents import Json, equal
from garboard.errors import PatchFailed
from garboard.patches.capture import create_json
from garboard.patches.json6902 import apply_json
from garboard.patches.json_values import copy_of
from garboard.patches.writer import DocumentWriter
from tests.support.patches.json_documents import OBJECTS


def operation(name: str, path: str, **members: Json) -> Json:
    return {"op": name, "path": path, **members}


@pytest.mark.parametrize(
    ("document", "step", "outcome"),
    [
        ({"a": [1, 2]}, operation("add", "/a/1", value=9), {"a": [1, 9, 2]}),
        ({"a": [1]}, operation("add", "/a/-", value=9), {"a": [1, 9]}),
        ({"a": {"b": 1}}, operation("move", "/c", **{"from": "/a/b"}), {"a": {}, "c": 1}),
        ({"a/b": {"~": 1}}, operation("remove", "/a~1b/~0"), {"a/b": {}}),
        ({"a": 1}, operation("replace", "", value={"b": 2}), {"b": 2}),
        ({"": 1}, operation("remove", "/"), {}),
        ({"a": [1, 2]}, operation("move", "/a/0", **{"from": "/a/1"}), {"a": [2, 1]}),
    ],
)
def test_operation_follows_the_rfc_without_a_remark(document: Json, step: Json, outcome: Json) -> None:
    writer = DocumentWriter()
    assert equal(apply_json(document, [step], writer), outcome)
    assert writer.remarks == []


@pytest.mark.parametrize(
    ("step", "outcome", "error_class"),
    [
        pytest.param(operation("replace", "/b", value=1), {"a": [1], "b": 1}, "path-missing", id="replace adds"),
        pytest.param(
            operation("copy", "/b", **{"from": "/c"}), {"a": [1], "b": None}, "path-missing", id="copy nothing"
        ),
        pytest.param(operation("test", "/b", value=None), {"a": [1]}, "path-missing", id="absent is null"),
        pytest.param(operation("add", "/b"), {"a": [1], "b": None}, "bad-operation", id="no value"),
        pytest.param(operation("add", "/a/-1", value=2), {"a": [1, 2]}, "bad-index", id="negative index appends"),
        pytest.param(operation("replace", "/a/00", value=2), {"a": [2]}, "bad-index", id="leading zero"),
        pytest.param(operation("add", "x/b", value=2), {"a": [1], "b": 2}, "path-missing", id="text before the slash"),
    ],
)
def test_leniency_of_the_reference_is_kept_and_remarked(step: Json, outcome: Json, error_class: str) -> None:
    writer = DocumentWriter()
    assert equal(apply_json({"a": [1]}, [step], writer), outcome)
    assert error_class in {remark.error_class for remark in writer.remarks}


@pytest.mark.parametrize(
    ("patch", "error_class"),
    [
        ([operation("remove", "/b")], "path-missing"),
        ([operation("add", "/b/c", value=1)], "path-missing"),
        ([operation("add", "", value={})], "path-missing"),
        ([operation("replace", "", value=1)], "bad-root"),
        ([operation("add", "/a/5", value=1)], "bad-index"),
        ([operation("add", "/a/1_0", value=1)], "bad-index"),
        ([operation("add", "/a/٣", value=1)], "bad-index"),
        ([operation("replace", "/a/" + "9" * 5000, value=1)], "bad-index"),
        ([operation("test", "/a", value=[2])], "test-failed"),
        ([operation("test", "/a/0", value=True)], "test-failed"),
        ([operation("Add", "/b", value=1)], "bad-operation"),
        ([{"op": "add"}], "bad-operation"),
        ([None], "bad-operation"),
        ([1], "bad-document"),
        ({}, "bad-document"),
    ],
)  # fmt: skip
def test_operation_is_refused(patch: Json, error_class: str) -> None:
    with pytest.raises(PatchFailed) as failure:
        apply_json({"a": [1]}, patch)
    assert failure.value.error_class == error_class
    assert failure.value.hint


@settings(max_examples=80, deadline=None)
@given(OBJECTS, OBJECTS)
def test_created_patch_yields_the_modified_document(original: dict[str, Json], modified: dict[str, Json]) -> None:
    patch = create_json(original, modified)
    writer = DocumentWriter()
    assert equal(apply_json(copy_of(original), patch, writer), modified)
    assert writer.remarks == []


@settings(max_examples=40, deadline=None)
@given(OBJECTS, st.sampled_from("abcd"))
def test_what_is_added_can_be_tested_and_removed(document: dict[str, Json], key: str) -> None:
    steps: list[Json] = [operation(name, f"/{key}x", value={"a": [1]}) for name in ("add", "test")]
    assert equal(apply_json(copy_of(document), [*steps, operation("remove", f"/{key}x")]), document)
