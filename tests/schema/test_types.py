"""The types of both minors; at 1.36.4 they equal a table taken independently from the same Go structs."""

import json
from pathlib import Path
from typing import Any

import pytest

from garboard.model import SUPPORTED_VERSIONS, KubernetesVersion
from garboard.schema import FieldType, Schema, StructType, load_schema

VECTORS = Path(__file__).parents[1] / "vectors/patches"
V136, V137 = SUPPORTED_VERSIONS[:2]


@pytest.fixture(scope="module")
def schema() -> Schema:
    return load_schema(V136)


def merge_kind(field: FieldType) -> str:
    """What a strategic merge takes the field for: quantities, times and their like count as structs there."""
    return "struct" if field.type is not None else field.kind


def as_vector(field: FieldType) -> dict[str, Any]:
    """Say a field in the words of smp-types.json."""
    said: dict[str, Any] = {"t": merge_kind(field)}
    if field.type is not None:
        said["ref"] = field.type.name
    if field.of is not None:
        said["of"] = as_vector(field.of)
    if field.pointer:
        said["ptr"] = True
    words = [field.strategy] * bool(field.strategy) + ["retainKeys"] * field.retain_keys
    if words:
        said["strategy"] = ",".join(words)
    if field.merge_key:
        said["key"] = field.merge_key
    return said


def test_types_of_1_36_4_equal_the_reference_table(schema: Schema) -> None:
    reference = json.loads((VECTORS / "smp-types.json").read_text())
    for root, name in reference["roots"].items():
        found = schema.type_of(*root.split(" "))
        assert found is not None
        assert found.name == name
    ours = {
        name: {key: as_vector(field) for key, field in schema.type_named(name).fields.items()}
        for name in reference["types"]
    }
    assert ours == reference["types"]


@pytest.mark.parametrize("version", SUPPORTED_VERSIONS, ids=str)
def test_every_type_of_a_minor_can_be_read(version: KubernetesVersion) -> None:
    waiting = [kind.type for kind in load_schema(version).kinds()]
    seen: set[str] = set()
    while waiting:
        current = waiting.pop()
        if current.name not in seen:
            seen.add(current.name)
            waiting += [below for field in current.fields.values() if (below := _struct_below(field)) is not None]
    assert len(seen) > 1000


def _struct_below(field: FieldType) -> StructType | None:
    while field.of is not None:
        field = field.of
    return field.type


def test_kubernetes_1_37_merges_eviction_responders_by_name() -> None:
    spec = load_schema(V137).type_named("core/v1.PodSpec")
    responders = spec.fields["evictionResponders"]
    assert (responders.strategy, responders.merge_key) == ("merge", "name")


@pytest.mark.parametrize(
    ("type_name", "field"),
    [
        ("core/v1.PodSpec", "evictionResponders"),
        ("core/v1.HTTPGetAction", "protocol"),
        ("core/v1.GRPCAction", "mode"),
        ("core/v1.EmptyDirVolumeSource", "mode"),
        ("config/v1beta1.KubeletConfiguration", "defaultPodSysctls"),
    ],
)
def test_field_is_new_in_1_37(type_name: str, field: str) -> None:
    assert load_schema(V136).type_named(type_name).field(field) is None
    assert load_schema(V137).type_named(type_name).field(field) is not None


def test_scheduling_group_is_in_both_minors_and_workload_ref_in_none() -> None:
    for version in SUPPORTED_VERSIONS:
        spec = load_schema(version).type_named("core/v1.PodSpec")
        assert spec.field("schedulingGroup") is not None
        assert spec.field("workloadRef") is None


def test_field_name_is_found_exactly_then_without_regard_to_case(schema: Schema) -> None:
    spec = schema.type_named("core/v1.PodSpec")
    assert spec.field("HOSTNetwork") is spec.fields["hostNetwork"]
    assert spec.field("hoſtnetwor\u212a") is spec.fields["hostNetwork"]
    assert spec.field("hostNet") is None


def test_quantity_is_a_scalar_that_merges_as_a_struct(schema: Schema) -> None:
    limit = schema.type_named("core/v1.ResourceRequirements").fields["limits"].of
    assert limit is not None
    assert (limit.kind, limit.scalar, merge_kind(limit)) == ("scalar", "quantity", "struct")


def test_deployment_strategy_retains_keys_without_a_merge(schema: Schema) -> None:
    strategy = schema.type_named("apps/v1.DeploymentSpec").fields["strategy"]
    assert (strategy.kind, strategy.strategy, strategy.retain_keys) == ("struct", "", True)
