"""What Go knows of an API type: its fields, how each is written, and how a strategic merge treats it.

Type data says each field in one line of text (docs/decisions/type-data.md), read when the type is first used:

    []core/v1.Container merge key=name      a list merged by name
    *int32 omitempty                        a pointer, left out when there is no value
    {}api/resource.Quantity omitempty       a map of quantities
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import msgspec

Kind = Literal["scalar", "struct", "map", "list", "any"]
Strategy = Literal["", "merge", "replace"]

_FIELDS = msgspec.json.Decoder(dict[str, str])


@dataclass(frozen=True, slots=True, eq=False)
class FieldType:
    """One field of a type, or the element of a list or map (then without a strategy of its own)."""

    kind: Kind
    scalar: str = ""  # string, bool, int32, …, bytes, or the word of a type that writes itself: quantity, time, …
    type: "StructType | None" = None  # the Go struct, also of a type that writes itself
    of: "FieldType | None" = None  # what a list or map holds
    pointer: bool = False
    strategy: Strategy = ""
    retain_keys: bool = False
    merge_key: str = ""
    omit_empty: bool = False
    omit_zero: bool = False


class StructType:
    """A Go struct with inlined structs folded in; its fields are read when they are first asked for."""

    def __init__(self, name: str, self_written: str, read_fields: "Callable[[], dict[str, FieldType]]") -> None:
        self.name = name
        self.self_written = self_written  # how it appears in a document ("quantity", "raw"); "" for a plain struct
        self._read_fields = read_fields

    def __repr__(self) -> str:
        return f"StructType({self.name})"

    @cached_property
    def fields(self) -> Mapping[str, FieldType]:
        return self._read_fields()

    @cached_property
    def _folded(self) -> Mapping[str, FieldType]:
        return {_fold(name): field for name, field in self.fields.items()}

    def field(self, name: str) -> FieldType | None:
        """Return the field as a strategic merge finds it: by its exact name, else without regard to case."""
        return self.fields.get(name) or self._folded.get(_fold(name))


class TypeTable:
    """Every type of one minor by name; a type costs nothing until it is used."""

    def __init__(self, types: Mapping[str, msgspec.Raw], self_written: Mapping[str, str]) -> None:
        self._raw = types
        self._self_written = self_written
        self._types: dict[str, StructType] = {}
        self._fields: dict[str, FieldType] = {}  # by notation: most fields look like some other field

    def __getitem__(self, name: str) -> StructType:
        found = self._types.get(name)
        if found is None:
            raw = self._raw[name]
            found = StructType(name, self._self_written.get(name, ""), lambda: self._read(raw))
            self._types[name] = found
        return found

    def _read(self, raw: msgspec.Raw) -> dict[str, FieldType]:
        return {name: self._field(notation) for name, notation in _FIELDS.decode(raw).items()}

    def _field(self, notation: str) -> FieldType:
        found = self._fields.get(notation)
        if found is None:
            found = self._fields[notation] = self._parse(notation)
        return found

    def _parse(self, notation: str) -> FieldType:
        shape, *words = notation.split(" ")
        pointer = shape.startswith("*")
        shape = shape.removeprefix("*")
        kind, scalar, type_, of = self._shape(shape)
        return FieldType(
            kind=kind,
            scalar=scalar,
            type=type_,
            of=of,
            pointer=pointer,
            strategy="merge" if "merge" in words else "replace" if "replace" in words else "",
            retain_keys="retainKeys" in words,
            merge_key=next((word[len("key=") :] for word in words if word.startswith("key=")), ""),
            omit_empty="omitempty" in words,
            omit_zero="omitzero" in words,
        )

    def _shape(self, shape: str) -> "tuple[Kind, str, StructType | None, FieldType | None]":
        if shape.startswith("[]"):
            return "list", "", None, self._field(shape[2:])
        if shape.startswith("{}"):
            return "map", "", None, self._field(shape[2:])
        if shape == "any":
            return "any", "", None, None
        if "." not in shape:
            return "scalar", shape, None, None
        type_ = self[shape]
        if not type_.self_written:
            return "struct", "", type_, None
        if type_.self_written == "raw":
            return "any", "", type_, None
        return "scalar", type_.self_written, type_, None


def _fold(name: str) -> str:
    # Go folds the long s and the Kelvin sign onto their ASCII letters; lower() knows the second only.
    return name.replace("ſ", "s").lower()
