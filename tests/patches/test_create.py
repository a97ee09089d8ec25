"""Created patches: applied to what they were made from, they give what they were made for."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from garboard.documents import Json, equal
from garboard.errors import BadUsage, PatchFailed
from garboard.model import DEFAULT_VERSION
from garboard.patches import create_three_way, create_two_way
from garboard.patches.json_values import copy_of
from garboard.patches.strategic import apply_strategic
from garboard.schema import load_schema
from tests.support.patches.random_patches import RandomPatches

SCHEMA = load_schema(DEFAULT_VERSION)
KINDS = ("Pod", "Deployment", "Service", "KubeletConfiguration", "Node")
CASES = st.tuples(st.sampled_from(KINDS), st.integers(0, 2**32))


@settings(max_examples=80, deadline=None)
@given(CASES)
def test_created_patch_yields_the_modified_document(case: tuple[str, int]) -> None:
    shape = SCHEMA.find_kind(case[0]).type
    made = RandomPatches(Random(case[1]), shape, is_tidy=True)
    original = made.document()
    modified = made.edited(original)
    patch = create_two_way(original, modified, shape)
    patched = apply_strategic(copy_of(original), patch, shape)
    # The reference loses a mere change of order among scalars: it sorts the original list before it compares.
    assert equal(with_scalars_sorted(patched), with_scalars_sorted(modified))
    assert equal(apply_strategic(copy_of(patched), patch, shape), patched), "applying it again changes nothing"


@settings(max_examples=40, deadline=None)
@given(CASES)
def test_no_change_gives_a_patch_that_changes_nothing(case: tuple[str, int]) -> None:
    shape = SCHEMA.find_kind(case[0]).type
    document = RandomPatches(Random(case[1]), shape, is_tidy=True).document()
    patch = create_two_way(document, copy_of(document), shape)
    # Scalars of a merged list that are not sorted get an order, as in the reference.
    assert patch == {} or set(leaf_names(patch)) <= {"$setElementOrder/finalizers", "$setElementOrder/podCIDRs"}
    assert equal(apply_strategic(copy_of(document), patch, shape), document)


def leaf_names(patch: Json) -> list[str]:
    assert isinstance(patch, dict)
    inner = [name for member in patch.values() if isinstance(member, dict) for name in leaf_names(member)]
    return [*inner, *(name for name, member in patch.items() if not isinstance(member, dict))]


@settings(max_examples=60, deadline=None)
@given(CASES)
def test_three_way_patch_yields_the_modified_document_when_nobody_else_changed_anything(case: tuple[str, int]) -> None:
    shape = SCHEMA.find_kind(case[0]).type
    made = RandomPatches(Random(case[1]), shape, is_tidy=True)
    original = made.document()
    modified = made.edited(original)
    patch = create_three_way(original, modified, original, shape)
    assert equal(with_scalars_sorted(apply_strategic(copy_of(original), patch, shape)), with_scalars_sorted(modified))


def with_scalars_sorted(value: Json) -> Json:
    if isinstance(value, dict):
        return {name: with_scalars_sorted(member) for name, member in value.items()}
    if isinstance(value, list):
        is_scalar = not any(isinstance(each, dict | list) for each in value)
        return sorted(value, key=repr) if is_scalar else [with_scalars_sorted(each) for each in value]
    return value


def test_three_way_patch_leaves_what_others_added() -> None:
    shape = SCHEMA.find_kind("Deployment").type
    live: Json = {"spec": {"replicas": 3, "paused": True}}
    patch = create_three_way({"spec": {"replicas": 1}}, {"spec": {"replicas": 2}}, live, shape)
    assert patch == {"spec": {"replicas": 2}}


def test_conflict_is_refused_unless_overwriting() -> None:
    shape = SCHEMA.find_kind("Deployment").type
    documents: tuple[Json, Json, Json] = (
        {"spec": {"replicas": 1}},
        {"spec": {"replicas": 2}},
        {"spec": {"replicas": 3}},
    )
    assert create_three_way(*documents, shape, overwrite=True) == {"spec": {"replicas": 2}}
    with pytest.raises(PatchFailed) as failure:
        create_three_way(*documents, shape, overwrite=False)
    assert failure.value.error_class == "conflict"


@pytest.mark.parametrize("precondition", ["kind", "metadata.name"])
def test_precondition_is_kept(precondition: str) -> None:
    shape = SCHEMA.find_kind("Pod").type
    modified: Json = {"kind": "Q", "metadata": {"name": "b"}}
    with pytest.raises(PatchFailed) as failure:
        create_two_way({"kind": "P", "metadata": {"name": "a"}}, modified, shape, [precondition])
    assert failure.value.error_class == "precondition"


def test_precondition_below_anything_but_metadata_is_bad_usage() -> None:
    with pytest.raises(BadUsage):
        create_two_way({}, {}, SCHEMA.find_kind("Pod").type, ["spec.nodeName"])
