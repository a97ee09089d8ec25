"""As much of JSON schema (draft 7) as the schemas for editors use, to see what they let pass."""

import re
from collections.abc import Iterator
from typing import Any

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "boolean": (bool,), "null": (type(None),),
    "integer": (int,), "number": (int, float),
}  # fmt: skip


def complaints(value: Any, schema: Any) -> list[str]:
    """Return what a schema does not allow in a value."""
    return [*_Check(schema).run(value, schema, "")]


class _Check:
    def __init__(self, root: Any) -> None:
        self.root = root

    def run(self, value: Any, schema: Any, at: str) -> Iterator[str]:
        if schema is True:
            return
        if "$ref" in schema:
            name = schema["$ref"].removeprefix("#/definitions/").replace("~1", "/").replace("~0", "~")
            yield from self.run(value, self.root["definitions"][name], at)
        if "type" in schema and not self._is_of(value, schema["type"]):
            yield f"{at}: {value!r} is not of type {schema['type']}"
        if "enum" in schema and value not in schema["enum"]:
            yield f"{at}: {value!r} is none of {schema['enum']}"
        if "const" in schema and value != schema["const"]:
            yield f"{at}: {value!r} is not {schema['const']}"
        for word, least, most in (("anyOf", 1, len(schema.get("anyOf", ()))), ("oneOf", 1, 1)):
            fitting = sum(not [*self.run(value, each, at)] for each in schema.get(word, ()))
            if word in schema and not least <= fitting <= most:
                yield f"{at}: {value!r} fits {fitting} of {word}"
        if isinstance(value, dict):
            yield from self._members(value, schema, at)
        if isinstance(value, list) and "items" in schema:
            for index, item in enumerate(value):
                yield from self.run(item, schema["items"], f"{at}[{index}]")

    def _members(self, value: dict[str, Any], schema: Any, at: str) -> Iterator[str]:
        yield from (f"{at}: {name} is missing" for name in schema.get("required", ()) if name not in value)
        for key, member in value.items():
            if "propertyNames" in schema:
                yield from self.run(key, schema["propertyNames"], f"{at}.{key}")
            patterns = [each for name, each in schema.get("patternProperties", {}).items() if re.search(name, key)]
            if key in schema.get("properties", {}):
                yield from self.run(member, schema["properties"][key], f"{at}.{key}")
            elif patterns:
                yield from self.run(member, patterns[0], f"{at}.{key}")
            elif schema.get("additionalProperties", True) is False:
                yield f"{at}.{key} is not allowed"
            else:
                yield from self.run(member, schema.get("additionalProperties", True), f"{at}.{key}")

    @staticmethod
    def _is_of(value: Any, types: str | list[str]) -> bool:
        names = [types] if isinstance(types, str) else types
        if isinstance(value, bool):
            return "boolean" in names
        return any(isinstance(value, _TYPES[name]) for name in names)
