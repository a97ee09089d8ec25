"""Structural schemas as the API server wants them: from the types of documents, and by hand for what has none."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import inspect

from garboard.documents import Json
from garboard.errors import GarboardError
from garboard.values import dataclass

AS_WRITTEN: Final = "x-kubernetes-preserve-unknown-fields"


class SchemaNode:
    """One node of a schema, which rules and limits are added to by path, such as `spec.patches[].path`."""

    def __init__(self, content: dict[str, Json]) -> None:
        self.content = content

    def at(self, path: str) -> "SchemaNode":
        """Return the node at a path; a mistake in a path is ours and raised."""
        node = self.content
        for part in path.split(".") if path else ():
            name = part.removesuffix("[]")
            node = _child(_child(node, "properties", path), name, path)
            if part.endswith("[]"):
                node = _child(node, "items", path)
        return SchemaNode(node)

    def add(self, **more: Json) -> None:
        self.content.update(more)

    def refuse(self, rule: "CelRule") -> None:
        rules = self.content.setdefault("x-kubernetes-validations", [])
        assert isinstance(rules, list)
        rules.append(rule.content())


def _child(node: dict[str, Json], name: str, path: str) -> dict[str, Json]:
    found = node.get(name)
    if not isinstance(found, dict):
        raise GarboardError(f"the schema has nothing at {path}: no {name}")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class CelRule:
    """What has to hold at a path; `also_when_new` lets a rule about changes see new objects, too."""

    at: str
    rule: str
    message: str
    also_when_new: bool = False

    def content(self) -> dict[str, Json]:
        more: dict[str, Json] = {"optionalOldSelf": True} if self.also_when_new else {}
        return {"rule": self.rule, "message": self.message, **more}


def text(description: str = "", **more: Json) -> dict[str, Json]:
    return _described({"type": "string", **more}, description)


def flag(description: str = "") -> dict[str, Json]:
    return _described({"type": "boolean"}, description)


def count(description: str = "", *, minimum: int | None = 0) -> dict[str, Json]:
    bound: dict[str, Json] = {} if minimum is None else {"minimum": minimum}
    return _described({"type": "integer", "format": "int32", **bound}, description)


def moment(description: str = "") -> dict[str, Json]:
    return _described({"type": "string", "format": "date-time", "nullable": True}, description)


def reference(description: str = "") -> dict[str, Json]:
    return _described({"type": "object", "properties": {"name": {"type": "string"}}}, description)


def mapping(
    properties: Mapping[str, Json], description: str = "", *, required: tuple[str, ...] = ()
) -> dict[str, Json]:
    needed: dict[str, Json] = {"required": list(required)} if required else {}
    return _described({"type": "object", "properties": dict(properties), **needed}, description)


def sequence(items: dict[str, Json], description: str = "") -> dict[str, Json]:
    return _described({"type": "array", "items": items}, description)


def open_mapping(description: str = "") -> dict[str, Json]:
    """Return the schema of a block that is kept as it is written."""
    return _described({"type": "object", AS_WRITTEN: True}, description)


def _described(schema: dict[str, Json], description: str) -> dict[str, Json]:
    return {"description": description, **schema} if description else schema


def schema_of(struct: type[msgspec.Struct]) -> dict[str, Json]:
    """Return the schema of a document's type: every field of it, and no other."""
    return _of_type(inspect.type_info(struct))


def _of_type(found: inspect.Type) -> dict[str, Json]:
    match found:
        case inspect.StructType(fields=fields):
            properties: dict[str, Json] = {each.encode_name: _of_type(each.type) for each in fields}
            return mapping(properties, required=tuple(each.encode_name for each in fields if each.required))
        case inspect.UnionType(types=types):
            return _of_union([each for each in types if not isinstance(each, inspect.NoneType)])
        case inspect.StrType(pattern=pattern, min_length=shortest):
            bounds: dict[str, Json] = {"pattern": pattern, "minLength": shortest}
            return {"type": "string", **{name: value for name, value in bounds.items() if value is not None}}
        case inspect.IntType(ge=smallest):
            return count(minimum=None if smallest is None or smallest < 0 else smallest)
        case inspect.BoolType():
            return flag()
        case inspect.LiteralType(values=values):
            return text(enum=list(values))
        case inspect.ListType(item_type=item):
            return sequence(_of_type(item))
        case inspect.DictType(value_type=inspect.AnyType()):
            return open_mapping()
        case inspect.DictType(value_type=value):
            return {"type": "object", "additionalProperties": _of_type(value)}
        case _:
            return {AS_WRITTEN: True}


def _of_union(types: list[Any]) -> dict[str, Json]:
    known = [each for each in types if not isinstance(each, inspect.CustomType)]
    return _of_type(known[0]) if len(known) == 1 else {AS_WRITTEN: True}
