"""Strategic merge: the facts that surprise, and the laws that hold for any document."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from garboard.documents import Json, equal
from garboard.errors import PatchFailed
from garboard.model import DEFAULT_VERSION
from garboard.patches.json_values import copy_of
from garboard.patches.strategic import apply_strategic, combine_patches
from garboard.patches.writer import DocumentWriter
from garboard.schema import load_schema
from tests.support.patches.random_patches import RandomPatches

SCHEMA = load_schema(DEFAULT_VERSION)
POD = SCHEMA.find_kind("Pod").type
KUBELET = SCHEMA.find_kind("KubeletConfiguration").type
SEEDS = st.integers(0, 2**32)


def spec(**members: Json) -> Json:
    return {"spec": dict(members)}


@pytest.mark.parametrize(
    ("original", "patch", "outcome"),
    [
        pytest.param(spec(a="x"), spec(a=None), spec(), id="null deletes"),
        pytest.param(spec(), spec(nodeSelector={"a": None, "b": "x"}), spec(nodeSelector={"b": "x"}), id="null in new"),
        pytest.param(
            spec(containers=[{"name": "a"}]), spec(containers=[{"name": "z"}]),
            spec(containers=[{"name": "z"}, {"name": "a"}]), id="new element goes first",
        ),
        pytest.param(
            spec(containers=[{"name": "a"}]), spec(containers=[{"name": "z", "image": None}]),
            spec(containers=[{"name": "z", "image": None}, {"name": "a"}]), id="null in an appended element stays",
        ),
        pytest.param(
            spec(tolerations=[{"key": "a"}]), spec(tolerations=[{"key": "b"}]), spec(tolerations=[{"key": "b"}]),
            id="list without strategy is replaced",
        ),
        pytest.param(spec(), {"spec": {"securityContext": {"$patch": "replace"}}}, spec(), id="replace of nothing"),
        pytest.param(
            spec(securityContext={"a": 1}), spec(securityContext={"$patch": "delete"}), spec(securityContext={}),
            id="delete of a map leaves an empty one",
        ),
        pytest.param(spec(a=1), {"spec": {"$retainKeys": ["b"], "b": 2}}, spec(b=2), id="retained keys"),
        pytest.param({"metadata": {"finalizers": ["a", "b"]}},
            {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}},
            {"metadata": {"finalizers": ["b"]}}, id="scalar deleted from a list"),
        pytest.param(spec(), None, spec(), id="null patch"),
    ],
)  # fmt: skip
def test_patch_has_this_outcome(original: Json, patch: Json, outcome: Json) -> None:
    assert equal(apply_strategic(original, patch, POD), outcome)


def test_scalar_of_another_kind_is_replaced_and_same_text_is_not_the_same() -> None:
    original: Json = {"status": {"podIPs": [{"ip": "1"}]}}
    patched = apply_strategic(original, {"status": {"podIPs": [{"ip": 1}]}}, POD)
    assert equal(patched, {"status": {"podIPs": [{"ip": 1}, {"ip": "1"}]}})


@pytest.mark.parametrize(
    ("patch", "error_class"),
    [
        pytest.param(spec(containers=[{"image": "x"}]), "no-merge-key", id="element without its key"),
        pytest.param(spec(container={"a": {}}), "unknown-field", id="unknown map"),
        pytest.param(spec(containers=[["a"]]), "element-types", id="list in a list"),
        pytest.param({"$patch": "merge"}, "bad-directive", id="merge is no directive"),
        pytest.param({"spec": {"$retainKeys": "a"}}, "bad-directive-format", id="retained keys must be a list"),
        pytest.param(
            {"spec": {"$setElementOrder/containers": [{"name": "b"}], "containers": [{"name": "a"}]}}, "order-mismatch",
            id="element that the order lacks",
        ),
        pytest.param([], "bad-document", id="list as patch"),
    ],
)  # fmt: skip
def test_patch_is_refused(patch: Json, error_class: str) -> None:
    original: Json = {"spec": {"containers": [{"name": "a"}], "container": {"a": {}}}}
    with pytest.raises(PatchFailed) as failure:
        apply_strategic(original, patch, POD)
    assert failure.value.error_class == error_class
    assert failure.value.hint


def test_map_of_lists_cannot_be_merged() -> None:
    original: Json = {"staticPodURLHeader": {"a": ["x"]}}
    with pytest.raises(PatchFailed, match="plain map") as failure:
        apply_strategic(original, {"staticPodURLHeader": {"a": ["y"]}}, KUBELET)
    assert failure.value.error_class == "not-a-struct"


def test_null_that_removes_nothing_is_remarked() -> None:
    writer = DocumentWriter()
    apply_strategic(spec(), spec(priority=None), POD, writer)
    assert [(remark.error_class, remark.at) for remark in writer.remarks] == [("zero-match", ("spec", "priority"))]


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_patch_is_never_changed_and_shares_nothing_with_the_outcome(seed: int) -> None:
    made = RandomPatches(Random(seed), POD)
    document = made.document()
    patch = made.strategic(document)
    before = copy_of(patch)
    try:
        outcome = apply_strategic(document, patch, POD)
    except PatchFailed:
        return
    assert equal(patch, before)
    assert not containers(outcome) & containers(patch)


def containers(value: Json) -> set[int]:
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    own = {id(value)} if isinstance(value, dict | list) else set()
    return own.union(*map(containers, members)) if members else own


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_document_patched_with_itself_is_itself(seed: int) -> None:
    document = RandomPatches(Random(seed), POD, is_tidy=True).document()
    assert equal(apply_strategic(copy_of(document), document, POD), document)


def test_combined_patches_keep_nulls_and_directives() -> None:
    first: dict[str, Json] = {"spec": {"priority": None, "containers": [{"name": "a", "$patch": "delete"}]}}
    combined = combine_patches(first, {"spec": {"hostname": "x"}}, POD)
    assert combined == {"spec": {"priority": None, "containers": [{"name": "a", "$patch": "delete"}], "hostname": "x"}}
