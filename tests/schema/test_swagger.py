"""The shipped types against the OpenAPI document that Kubernetes publishes: another way from the same Go source."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from garboard.model import SUPPORTED_VERSIONS, KubernetesVersion
from garboard.schema import FieldType, Schema, StructType, load_schema
from tools.schema.gomodule import kubernetes_source

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]
VERSIONS = pytest.mark.parametrize("version", SUPPORTED_VERSIONS, ids=str)

NO_OBJECTS = {"DeleteOptions", "WatchEvent"}  # bodies of requests and answers, repeated in every group
# Objects of the API aggregator, whose types neither kubeadm nor kubectl has, so that no strategic patch reaches them.
OF_THE_AGGREGATOR = {"apiregistration.k8s.io/v1 APIService", "apiregistration.k8s.io/v1 APIServiceList"}
SCALARS: dict[tuple[str | None, str | None], str] = {
    ("boolean", None): "bool",
    ("integer", "int32"): "int32",
    ("integer", "int64"): "int64",
    ("number", "double"): "float64",
    ("string", "byte"): "bytes",
    ("string", None): "string",
}
# Definitions that are no structs in a document, and the word for what they are.
SELF_WRITTEN = {
    "api.resource.Quantity": "quantity",
    "apis.meta.v1.MicroTime": "microTime",
    "apis.meta.v1.Time": "time",
    "util.intstr.IntOrString": "intOrString",
    "apis.meta.v1.FieldsV1": "any",
    "runtime.RawExtension": "any",
    "apiextensions.v1.JSON": "any",
    "apiextensions.v1.JSONSchemaPropsOrArray": "any",
    "apiextensions.v1.JSONSchemaPropsOrBool": "any",
    "apiextensions.v1.JSONSchemaPropsOrStringArray": "any",
}


@dataclass
class Comparison:
    """A walk through the types and the definitions, side by side."""

    definitions: dict[str, Any]
    seen: set[tuple[str, str]] = field(default_factory=set)

    def struct(self, name: str, type_: StructType) -> Iterator[str]:
        if (name, type_.name) in self.seen:
            return
        self.seen.add((name, type_.name))
        properties = self.definitions[name].get("properties", {})
        for missing in sorted(properties.keys() ^ type_.fields.keys()):
            yield f"{name}.{missing} is only in one of the two"
        for member in properties.keys() & type_.fields.keys():
            yield from self.member(f"{name}.{member}", properties[member], type_.fields[member])

    def member(self, at: str, property_: dict[str, Any], member: FieldType) -> Iterator[str]:
        words = [member.strategy, "retainKeys" if member.retain_keys else ""]
        ours = (",".join(filter(None, words)), member.merge_key)
        theirs = (property_.get("x-kubernetes-patch-strategy", ""), property_.get("x-kubernetes-patch-merge-key", ""))
        if ours != theirs:
            yield f"{at} is merged by {theirs}, not {ours}"
        yield from self.shape(at, property_, member)

    def shape(self, at: str, property_: dict[str, Any], member: FieldType) -> Iterator[str]:
        if "$ref" in property_:
            yield from self.reference(at, property_["$ref"].rpartition("/")[2], member)
        elif property_.get("type") == "array" and member.kind == "list" and member.of is not None:
            yield from self.shape(f"{at}[]", property_["items"], member.of)
        elif "additionalProperties" in property_ and member.kind == "map" and member.of is not None:
            yield from self.shape(f"{at}{{}}", property_["additionalProperties"], member.of)
        elif SCALARS.get((property_.get("type"), property_.get("format"))) != member.scalar or member.kind != "scalar":
            yield f"{at} is {property_.get('type')} {property_.get('format')}, not {member.kind} {member.scalar}"

    def reference(self, at: str, name: str, member: FieldType) -> Iterator[str]:
        if member.kind == "struct" and member.type is not None:
            yield from self.struct(name, member.type)
            return
        words = [word for suffix, word in SELF_WRITTEN.items() if name.endswith(f".{suffix}")]
        if words != [member.scalar or member.kind]:
            yield f"{at} is a {name}, not {member.kind} {member.scalar}"


def definitions_of(version: KubernetesVersion, folder: Path) -> dict[str, Any]:
    path = kubernetes_source(str(version), folder) / "api/openapi-spec/swagger.json"
    found: dict[str, Any] = json.loads(path.read_text())["definitions"]
    return found


def kinds_of(definitions: dict[str, Any]) -> dict[str, str]:
    """Return the definition of every kind that has one, by apiVersion and kind."""
    kinds = {}
    for name, definition in definitions.items():
        for kind in definition.get("x-kubernetes-group-version-kind", ()):
            if kind["kind"] not in NO_OBJECTS:
                kinds["/".join(filter(None, (kind["group"], kind["version"]))) + f" {kind['kind']}"] = name
    return kinds


def ours(schema: Schema) -> dict[str, StructType]:
    return {str(kind): kind.type for kind in schema.kinds()}


@VERSIONS
def test_every_published_kind_has_a_type(version: KubernetesVersion, tmp_path: Path) -> None:
    published = kinds_of(definitions_of(version, tmp_path))
    assert len(published) > 180
    assert published.keys() - ours(load_schema(version)).keys() == OF_THE_AGGREGATOR


@VERSIONS
def test_fields_types_and_merge_keys_are_the_published_ones(version: KubernetesVersion, tmp_path: Path) -> None:
    definitions = definitions_of(version, tmp_path)
    comparison = Comparison(definitions)
    types = ours(load_schema(version))
    differences: list[str] = []
    for kind, name in kinds_of(definitions).items():
        if kind in types:
            differences += comparison.struct(name, types[kind])
    assert differences == []
    assert len(comparison.seen) > 700
