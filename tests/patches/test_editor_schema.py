"""Schemas for editors: what lint has nothing to say about passes, and what is misspelt does not."""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from garboard.model import DEFAULT_VERSION
from garboard.patches import Patch, PatchType, SourceText, check_patch
from garboard.patches.editor_schema import args_schema, operations_schema, patch_schema, patch_set_schema
from garboard.schema import load_schema
from tests.support.patches.json_schema import complaints
from tests.support.patches.random_patches import RandomPatches

TYPES = load_schema(DEFAULT_VERSION)
KINDS = ("Pod", "Deployment", "KubeletConfiguration")
SCHEMAS = {kind: patch_schema(TYPES.find_kind(kind).type, kind) for kind in KINDS}
APISERVER = TYPES.component("kube-apiserver")


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(seed=st.integers(0, 2**32))
def test_whatever_a_schema_refuses_lint_refuses_too(kind: str, seed: int) -> None:
    shape = TYPES.find_kind(kind).type
    made = RandomPatches(Random(seed), shape, is_tidy=True)
    value = made.document()  # a document is a patch of its type that sets everything in it
    patch = Patch(SourceText("p.yaml", ""), PatchType.STRATEGIC, value)
    told = {each.error_class for each in check_patch(patch, shape, TYPES)}
    assert told & {"unknown-field", "wrong-type"} or complaints(value, SCHEMAS[kind]) == []


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"spec": {"contaners": []}}, ".spec.contaners is not allowed"),
        ({"spec": {"containers": [{"name": "a", "imagePullPolice": "Always"}]}}, "imagePullPolice is not allowed"),
        ({"spec": {"priority": "high"}}, ".spec.priority: 'high' is not of type ['integer', 'null']"),
        ({"spec": {"$patch": "merge"}}, ".spec.$patch: 'merge' is none of ['replace', 'delete']"),
        ({"spec": {"containers": {}}}, ".spec.containers: {} is not of type ['array', 'null']"),
    ],
)
def test_misspelt_patch_does_not_pass(value: Any, said: str) -> None:
    assert said in complaints(value, SCHEMAS["Pod"])[0]


@pytest.mark.parametrize(
    "value",
    [
        None,
        {"spec": None},
        {"spec": {"containers": [{"name": "a", "$patch": "delete"}], "$setElementOrder/containers": [{"name": "b"}]}},
        {"spec": {"containers": [{"name": "a", "resources": {"limits": {"cpu": 1, "memory": "1Gi"}}}]}},
        {"metadata": {"labels": {"$patch": "replace", "a": "b"}}},
    ],
)
def test_what_strategic_merge_knows_passes(value: Any) -> None:
    assert complaints(value, SCHEMAS["Pod"]) == []


def test_merge_patch_has_no_directives() -> None:
    schema = patch_schema(TYPES.find_kind("Pod").type, "Pod", PatchType.MERGE)
    assert complaints({"spec": {"$patch": "delete"}}, schema) == [".spec.$patch is not allowed"]


def test_flag_patch_has_the_flags_of_its_component() -> None:
    assert APISERVER is not None
    schema = args_schema(APISERVER, "flags")
    assert complaints({"profiling": False, "v": None, "service-account-issuer": ["a", "b"]}, schema) == []
    assert complaints({"profling": False}, schema) == [".profling is not allowed"]


def test_json_patch_has_what_its_operations_need() -> None:
    schema = operations_schema("operations")
    assert complaints([{"op": "remove", "path": "/a"}, {"op": "copy", "from": "/a", "path": "/b"}], schema) == []
    assert complaints([{"op": "remove"}], schema)
    assert complaints([{"op": "add", "path": "/a"}], schema)
    assert complaints([{"op": "remove", "path": "/a", "vlaue": 1}], schema)


def test_entry_of_a_patch_set_has_a_file_or_a_patch() -> None:
    schema = patch_set_schema()
    entry = {"target": {"kind": "Pod"}, "type": "merge"}
    assert complaints({"patches": [{**entry, "file": "a.yaml"}, {**entry, "patch": "a: 1"}]}, schema) == []
    for wrong in (entry, {**entry, "file": "a", "patch": "b"}, {"file": "a", "target": {"knd": "Pod"}}):
        assert complaints({"patches": [wrong]}, schema)
