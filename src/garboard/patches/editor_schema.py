"""JSON schemas for editors: what a patch of a type, a flag patch or a patch set may hold.

They are draft 7, which YAML language servers know. An editor only helps to write: lint still checks what they let pass.
"""

from collections.abc import Mapping

from garboard.documents import Json
from garboard.patches.check import MEMBERS, NEEDS
from garboard.patches.patch import PatchType
from garboard.patches.strategic_fields import DELETE_FROM_LIST, DIRECTIVE, RETAIN_KEYS, SET_ORDER
from garboard.patches.tree import API_VERSION
from garboard.schema import ComponentOptions, FieldType, StructType

DRAFT = "http://json-schema.org/draft-07/schema#"
_INTEGERS = ("int", "int32", "int64", "uint", "uint32", "uint64")
_ANY: Json = True
_DIRECTIVES: Mapping[str, Json] = {
    DIRECTIVE: {"enum": ["replace", "delete"]},
    RETAIN_KEYS: {"type": "array", "items": {"type": "string"}},
}
_LIST_DIRECTIVES: Mapping[str, Json] = {
    f"^\\{SET_ORDER}/": {"type": "array"},
    f"^\\{DELETE_FROM_LIST}/": {"type": "array"},
}
_SELECTION = ("group", "version", "kind", "name", "namespace", "labelSelector")


def patch_schema(shape: StructType, title: str, type_: PatchType = PatchType.STRATEGIC) -> Json:
    """Return the schema of a strategic or merge patch of a type; null removes a member, so it is allowed everywhere."""
    known: dict[str, Json] = {}
    _define(shape, known, has_directives=type_ is PatchType.STRATEGIC)
    return {"$schema": DRAFT, "title": title, "$ref": _reference(shape), "definitions": known}


def args_schema(options: ComponentOptions, title: str) -> Json:
    """Return the schema of a flag patch: every flag of the component, set, repeated or removed."""
    scalar: Json = {"type": ["string", "number", "boolean", "null"]}
    value: Json = {"anyOf": [scalar, {"type": "array", "items": scalar}]}
    flags: dict[str, Json] = {
        name: {"$ref": "#/definitions/value", **({"deprecated": True} if flag.is_deprecated else {})}
        for name, flag in sorted(options.flags.items())
    }
    return {
        "$schema": DRAFT,
        "title": title,
        "type": ["object", "null"],
        "properties": flags,
        "additionalProperties": False,
        "definitions": {"value": value},
    }


def operations_schema(title: str) -> Json:
    """Return the schema of a JSON patch."""
    text: Json = {"type": "string"}
    kinds: list[Json] = [
        {
            "properties": {"op": {"const": name}, "path": text, "from": text, "value": _ANY},
            "required": ["op", *needs],
            "propertyNames": {"enum": [*MEMBERS]},
        }
        for name, needs in NEEDS.items()
    ]
    return {"$schema": DRAFT, "title": title, "type": ["array", "null"], "items": {"type": "object", "oneOf": kinds}}


def patch_set_schema() -> Json:
    """Return the schema of a patch set."""
    text: Json = {"type": "string"}
    entry: Json = {
        "type": "object",
        "properties": {
            "target": {
                "type": "object",
                "properties": dict.fromkeys(_SELECTION, text),
                "additionalProperties": False,
            },
            "type": {"enum": [str(each) for each in PatchType]},
            "file": text,
            "patch": text,
        },
        "additionalProperties": False,
        "oneOf": [{"required": ["file"]}, {"required": ["patch"]}],
    }
    return {
        "$schema": DRAFT,
        "title": "A patch set of garboard",
        "type": "object",
        "properties": {
            "apiVersion": {"const": API_VERSION},
            "kind": {"const": "PatchSet"},
            "patches": {"type": "array", "items": entry},
        },
        "required": ["patches"],
        "additionalProperties": False,
    }


def _define(shape: StructType, known: dict[str, Json], *, has_directives: bool) -> None:
    """Add the definition of a type and of all those that it holds."""
    if shape.name in known:
        return
    known[shape.name] = _ANY  # a type may hold itself
    properties = {
        name: _value(field, known, has_directives=has_directives) for name, field in sorted(shape.fields.items())
    }
    known[shape.name] = {
        "type": ["object", "null"],
        "properties": {**properties, **(_DIRECTIVES if has_directives else {})},
        "patternProperties": dict(_LIST_DIRECTIVES) if has_directives else {},
        "additionalProperties": False,
    }


def _reference(shape: StructType) -> str:
    return "#/definitions/" + shape.name.replace("~", "~0").replace("/", "~1")


def _value(field: FieldType, known: dict[str, Json], *, has_directives: bool) -> Json:
    if field.kind == "scalar":
        return _scalar(field.scalar)
    if field.kind == "list" and field.of is not None:
        items = _value(field.of, known, has_directives=has_directives)
        return {"type": ["array", "null"], "items": items}
    if field.kind == "map" and field.of is not None:
        members = _value(field.of, known, has_directives=has_directives)
        directives = dict(_DIRECTIVES) if has_directives else {}
        return {"type": ["object", "null"], "properties": directives, "additionalProperties": members}
    if field.kind == "struct" and field.type is not None and not field.type.self_written:
        _define(field.type, known, has_directives=has_directives)
        return {"$ref": _reference(field.type)}
    return _ANY


def _scalar(name: str) -> Json:
    if name in _INTEGERS:
        return {"type": ["integer", "null"]}
    words = {"string": "string", "bool": "boolean", "float32": "number", "float64": "number"}
    return {"type": [words[name], "null"]} if name in words else {"type": ["string", "number", "null"]}
