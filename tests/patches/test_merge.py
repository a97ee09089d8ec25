"""JSON merge patch: the RFC, and where the reference leaves it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from garboard.documents import Json, equal
from garboard.errors import PatchFailed
from garboard.patches.capture import create_merge
from garboard.patches.json_values import copy_of
from garboard.patches.merge import apply_merge
from garboard.patches.writer import DocumentWriter
from tests.support.patches.json_documents import LEAVES, OBJECTS

PATCHES = st.recursive(
    LEAVES | st.none(),
    lambda inner: st.lists(LEAVES, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=3),
    max_leaves=8,
).filter(lambda patch: isinstance(patch, dict))


@pytest.mark.parametrize(
    ("original", "patch", "outcome"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ({"a": 1}, {"a": [{"b": None, "c": 1}, None]}, {"a": [{"c": 1}, None]}),
        ({"a": {}}, {"a": [{"b": None}]}, {"a": [{"b": None}]}),
        ([1], {"a": {"b": None}}, {"a": {}}),
        ({"a": 1}, [{"b": None}], [{}]),
    ],
)
def test_patch_has_this_outcome(original: Json, patch: Json, outcome: Json) -> None:
    assert equal(apply_merge(original, patch), outcome)


@pytest.mark.parametrize(("original", "patch"), [({}, None), ({}, "text"), ({}, 1), (None, {})])
def test_scalar_or_null_is_refused(original: Json, patch: Json) -> None:
    with pytest.raises(PatchFailed) as failure:
        apply_merge(original, patch)
    assert failure.value.error_class == "bad-document"


@settings(max_examples=80, deadline=None)
@given(OBJECTS, PATCHES)
def test_merging_twice_is_merging_once(document: dict[str, Json], patch: Json) -> None:
    once = apply_merge(copy_of(document), patch)
    assert equal(apply_merge(copy_of(once), patch), once)


@settings(max_examples=80, deadline=None)
@given(OBJECTS, OBJECTS)
def test_created_patch_yields_the_modified_document(original: dict[str, Json], modified: dict[str, Json]) -> None:
    assert equal(apply_merge(copy_of(original), create_merge(original, modified)), modified)


def test_null_that_removes_nothing_is_remarked() -> None:
    writer = DocumentWriter()
    apply_merge({}, {"a": None}, writer)
    assert [remark.error_class for remark in writer.remarks] == ["zero-match"]
