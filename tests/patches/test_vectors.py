"""Every shared vector, through the engine, in compat mode: expected values come from running the real programs."""

import json
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from garboard.documents import Json, write_yaml
from garboard.errors import GarboardError, PatchFailed
from garboard.model import KubernetesVersion
from garboard.patches import (
    NodeFacts,
    Patch,
    PatchFile,
    PatchSubject,
    PatchType,
    SourceText,
    apply_patches,
    as_decoded,
    create_three_way,
    create_two_way,
    find_target,
    read_patch_tree,
)
from garboard.schema import StructType, load_schema
from tests.support.equality import same_value

VECTORS = Path(__file__).parent.parent / "vectors" / "patches"
VERSION = KubernetesVersion(1, 36, 4)
SCHEMA = load_schema(VERSION)

# Vectors marked `edge` are accidents of the reference. What is listed here differs on purpose: docs/compatibility.md.
DELIBERATE = {"test-null-inside-array-crashes"}
Outcome: TypeAlias = "Json | GarboardError"


def vectors(name: str) -> list[Any]:
    loaded = json.loads((VECTORS / f"{name}.json").read_text())["vectors"]
    return [pytest.param(each, id=each["name"]) for each in loaded if each["name"] not in DELIBERATE]


def shape_of(kind: str) -> StructType:
    # kubectl has no local type for these, whatever others may know of them.
    if kind in ("CustomResourceDefinition", "Widget"):
        raise PatchFailed("no local type", error_class="unsupported-kind")
    return SCHEMA.find_kind(kind).type


def check(vector: dict[str, Any], outcome: Outcome) -> None:
    if "error" in vector:
        assert isinstance(outcome, GarboardError), f"expected {vector['error']}, got {outcome}"
        assert vector["error"] in (outcome.error_class, "crash")
    else:
        assert not isinstance(outcome, GarboardError), outcome
        assert same_value(outcome, vector["expected"])


def patch_of(vector: dict[str, Any], type_: PatchType) -> Patch:
    if "patchText" in vector:
        return Patch.from_kubectl(SourceText("patch.yaml", vector["patchText"]), type_)
    return Patch(SourceText("patch.yaml", json.dumps(vector["patch"])), type_, vector["patch"])


@pytest.mark.parametrize("vector", [*vectors("strategic"), *vectors("json-patch"), *vectors("merge-patch")])
def test_patch_gives_what_the_reference_gives(vector: dict[str, Any]) -> None:
    type_ = PatchType(vector["type"])
    outcome: Outcome
    try:
        shape = shape_of(vector["kind"]) if type_ is PatchType.STRATEGIC else None
        outcome = apply_patches(as_decoded(vector["original"]), [patch_of(vector, type_)], PatchSubject(shape)).document
    except GarboardError as error:
        outcome = error
    check(vector, outcome)


@pytest.mark.parametrize("vector", vectors("create"))
def test_created_patch_is_the_reference_s(vector: dict[str, Any]) -> None:
    shape = shape_of(vector["kind"])
    preconditions = vector.get("preconditions") or ()
    outcome: Outcome
    try:
        if vector["type"] == "two-way":
            outcome = create_two_way(vector["original"], vector["modified"], shape, preconditions)
        else:
            documents = (vector["original"], vector["modified"], vector["current"])
            outcome = create_three_way(*documents, shape, overwrite=vector["overwrite"], preconditions=preconditions)
    except GarboardError as error:
        outcome = error
    check(vector, outcome)


@pytest.mark.parametrize("vector", vectors("kubeadm"))
def test_patch_directory_gives_what_kubeadm_writes(vector: dict[str, Any]) -> None:
    files = [
        PatchFile(name, f"patches/{name}", lambda text=text: text.encode())  # type: ignore[misc]
        for name, text in vector["files"].items()
    ]
    target = find_target(vector["target"], VERSION)
    base = as_decoded(
        Patch.from_yaml(SourceText("base", (VECTORS / vector["base"]).read_text()), PatchType.MERGE).value
    )
    outcome: Outcome
    try:
        patches = read_patch_tree(files, SCHEMA, NodeFacts()).for_target(target)
        outcome = write_yaml(apply_patches(base, patches, PatchSubject.of_document(base, target, SCHEMA)).document)
    except GarboardError as error:
        outcome = error
    check({**vector, "expected": vector.get("expectedYAML")}, outcome)


def test_all_vectors_are_run() -> None:
    names = ("strategic", "json-patch", "merge-patch", "yaml", "kubeadm", "create")
    counts = {name: len(json.loads((VECTORS / f"{name}.json").read_text())["vectors"]) for name in names}
    assert sum(counts.values()) == 457
