"""A captured patch yields the edit, and no part of it can be left out."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from garboard.documents import DocumentPath, Json, equal
from garboard.errors import PatchFailed
from garboard.model import DEFAULT_VERSION
from garboard.patches import PatchType, capture_patch
from garboard.patches.json6902 import apply_json
from garboard.patches.json_values import copy_of
from garboard.patches.merge import apply_merge
from garboard.patches.strategic import apply_strategic
from garboard.schema import load_schema

POD = load_schema(DEFAULT_VERSION).find_kind("Pod").type

texts = st.sampled_from(["1", "2"])
elements: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {"name": st.sampled_from("xyz")},
    optional={"image": texts, "command": st.lists(texts, max_size=2), "ports": st.just([{"containerPort": 80}])},
)
pods: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {"apiVersion": st.just("v1"), "kind": st.just("Pod")},
    optional={
        "metadata": st.fixed_dictionaries(
            {}, optional={"labels": st.dictionaries(st.sampled_from("ab"), texts), "finalizers": st.lists(texts)}
        ),
        "spec": st.fixed_dictionaries(
            {},
            optional={
                "nodeName": texts,
                "containers": st.lists(elements, max_size=3, unique_by=lambda each: str(each["name"])),
            },
        ),
    },
)


def apply(type_: PatchType, original: Json, patch: Json) -> Json:
    if type_ is PatchType.STRATEGIC:
        return apply_strategic(copy_of(original), patch, POD)
    return (apply_merge if type_ is PatchType.MERGE else apply_json)(copy_of(original), patch)


def leaves(value: Json, path: DocumentPath = ()) -> Iterator[DocumentPath]:
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = False
    for key, member in members:
        found = True
        yield from leaves(member, (*path, key))
    if not found and path:
        yield path


def without(patch: Json, path: DocumentPath) -> Json:
    smaller: Any = copy_of(patch)
    holder = smaller
    for step in path[:-1]:
        holder = holder[step]
    del holder[path[-1]]
    return smaller  # type: ignore[no-any-return]


@pytest.mark.parametrize("type_", [PatchType.STRATEGIC, PatchType.MERGE])
@settings(max_examples=120)
@given(original=pods, modified=pods)
def test_captured_patch_yields_the_edit_and_is_minimal(type_: PatchType, original: Json, modified: Json) -> None:
    try:
        patch = capture_patch(original, modified, type_, POD)
    except PatchFailed as error:
        assert error.error_class in ("not-expressible", "no-merge-key", "element-types")  # noqa: PT017
        return
    assert equal(apply(type_, original, patch), modified)
    for path in leaves(patch):
        try:
            outcome = apply(type_, original, without(patch, path))
        except PatchFailed:
            continue
        assert not equal(outcome, modified), f"{path} of {patch} is not needed"


@settings(max_examples=120)
@given(original=pods, modified=pods)
def test_json_capture_can_express_any_edit(original: Json, modified: Json) -> None:
    patch = capture_patch(original, modified, PatchType.JSON, None)
    assert equal(apply(PatchType.JSON, original, patch), modified)


def test_order_alone_is_captured_by_an_order_directive() -> None:
    original: Json = {"spec": {"containers": [{"name": "a"}, {"name": "b"}]}}
    modified: Json = {"spec": {"containers": [{"name": "b"}, {"name": "a"}]}}
    patch = capture_patch(original, modified, PatchType.STRATEGIC, POD)
    assert isinstance(patch, dict)
    assert patch["spec"] == {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}


def test_redundant_order_is_left_out() -> None:
    original: Json = {"spec": {"containers": [{"name": "a", "image": "1"}]}}
    modified: Json = {"spec": {"containers": [{"name": "a", "image": "2"}]}}
    patch = capture_patch(original, modified, PatchType.STRATEGIC, POD)
    assert patch == {"spec": {"containers": [{"name": "a", "image": "2"}]}}


def test_null_in_an_edit_cannot_be_captured_by_a_merge_patch() -> None:
    with pytest.raises(PatchFailed, match="cannot express") as caught:
        capture_patch({"a": 1}, {"a": None}, PatchType.MERGE, None)
    assert caught.value.hint is not None
    assert "--type json" in caught.value.hint
