"""Checking what a patch says against the fields of its type, without any document to apply it to."""

from dataclasses import dataclass
from enum import Enum, auto

from garboard.documents import DocumentPath, Json
from garboard.model import SUPPORTED_VERSIONS
from garboard.patches.check_directives import DirectiveCheck, field_of
from garboard.patches.check_flags import FlagCheck
from garboard.patches.findings import PatchFindings
from garboard.patches.strategic_fields import DIRECTIVE, DIRECTIVES
from garboard.rules import bad_field_value
from garboard.schema import FieldType, Schema, StructType, load_schema, suggest
from garboard.schema.scalars import READERS, Mismatch, expected

CONTAINER = "core/v1.Container"
GATED = {"KubeletConfiguration": "kubelet", "KubeProxyConfiguration": "kube-proxy"}


class Reading(Enum):
    """How the engine will apply a part of a patch."""

    STRATEGIC = auto()  # merged: directives act, merge keys find elements
    MERGE = auto()  # merged by member, lists whole; directives are data
    VERBATIM = auto()  # copied as it stands


@dataclass(frozen=True, slots=True)
class TypeCheck:
    """Compares a patch document with its type, field by field."""

    findings: PatchFindings
    schema: Schema
    flags: FlagCheck
    directives: DirectiveCheck

    def members(self, value: dict[str, Json], shape: StructType, at: DocumentPath, reading: Reading) -> None:
        """Check a map whose members are the fields of a struct."""
        below = self._below(value, at, reading)
        for key, member in value.items():
            place = (*at, key)
            if key.startswith("$"):
                self._directive(key, member, value, shape, place, reading)
            elif key not in shape.fields:
                self.unknown_field(key, shape, place)
            else:
                self.value(member, shape.fields[key], place, below)
                if value.get(DIRECTIVE) != "delete":
                    self.allowed(member, shape, key, place)
        if shape.name == CONTAINER:
            self.flags.container(value, at)
        gated = GATED.get(short_name(shape))
        if gated is not None:
            self.flags.gate_map(value.get("featureGates"), gated, (*at, "featureGates"))

    def value(self, value: Json, field: FieldType, at: DocumentPath, reading: Reading) -> None:
        """Check a value of a field; null removes the field and is always allowed."""
        if value is None or field.kind == "any":
            return
        if field.kind == "scalar":
            self._scalar(value, field, at, reading)
        elif field.kind == "list":
            self._list(value, field, at, reading)
        elif not isinstance(value, dict):
            self._mismatch(expected("a map", value), at)
        elif field.type is not None:
            self.members(value, field.type, at, reading)
        elif field.of is not None:
            self._map(value, field.of, at, reading)

    def allowed(self, value: Json, shape: StructType, name: str, at: DocumentPath) -> None:
        """Check whether a field may hold a value: a word, a number or a name that Kubernetes takes there."""
        problem = bad_field_value(shape, name, value)
        if problem is not None:
            self.findings.error(problem.code, f"{name}: {problem.message}", at, problem.hint)

    def unknown_field(self, key: str, shape: StructType, at: DocumentPath, token: int | None = None) -> None:
        """Add the finding about a field that the type does not have; with `token`, at that part of a JSON pointer."""
        message = f"{short_name(shape)} of Kubernetes {self.schema.version.as_minor} has no field {key!r}"
        hint = self._nearest(key, shape)
        if token is None:
            self.findings.error("unknown-field", message, at, hint)
        else:
            self.findings.error_in_pointer("unknown-field", message, at, token, hint)

    def _nearest(self, key: str, shape: StructType) -> str | None:
        for version in SUPPORTED_VERSIONS:
            if version.as_minor != self.schema.version.as_minor and key in _fields_in(load_schema(version), shape):
                return f"Kubernetes {version.as_minor} has it; the patch cannot serve both minors"
        near = suggest(key, shape.fields)
        if near is not None:
            return f"did you mean {near!r}?"
        few = sorted(shape.fields)
        return f"the fields are {', '.join(few)}" if len(few) <= 12 else None

    def _scalar(self, value: Json, field: FieldType, at: DocumentPath, reading: Reading) -> None:
        if _is_removal(value, reading):
            return
        try:
            READERS[field.scalar](value)
        except Mismatch as mismatch:
            self._mismatch(mismatch, at)

    def _mismatch(self, mismatch: Mismatch, at: DocumentPath) -> None:
        self.findings.error("wrong-type", f"{self.findings.label(at)}: {mismatch.reason}", at)

    def _map(self, value: dict[str, Json], of: FieldType, at: DocumentPath, reading: Reading) -> None:
        below = self._below(value, at, reading)
        for key, member in value.items():
            if not key.startswith(DIRECTIVES):
                self.value(member, of, (*at, key), below)
            elif reading is not Reading.STRATEGIC:
                self.directives.leaked(key, (*at, key))
            else:
                self.directives.in_plain_map(key, member, value, (*at, key))

    def _list(self, value: Json, field: FieldType, at: DocumentPath, reading: Reading) -> None:
        if _is_removal(value, reading):
            return
        if not isinstance(value, list) or field.of is None:
            self._mismatch(expected("a list", value), at)
            return
        if reading is Reading.STRATEGIC and field.strategy == "merge":
            self._merge_list(value, field, at)
            return
        below = Reading.VERBATIM if reading is Reading.STRATEGIC else reading
        for index, element in enumerate(value):
            self.value(element, field.of, (*at, index), below)

    def _merge_list(self, elements: list[Json], field: FieldType, at: DocumentPath) -> None:
        assert field.of is not None
        # Where one element replaces the whole list, the others are copied as they are, repeated keys included.
        is_replaced = any(isinstance(element, dict) and element.get(DIRECTIVE) == "replace" for element in elements)
        seen: set[str] | None = None if is_replaced else set()
        for index, element in enumerate(elements):
            place = (*at, index)
            if element is None:
                self.findings.error("element-types", "a list that is merged cannot hold null", place)
                continue
            self.value(element, field.of, place, Reading.STRATEGIC)
            if isinstance(element, dict) and field.of.type is not None:
                self._keyed_element(element, field, place, seen)

    def _keyed_element(
        self, element: dict[str, Json], field: FieldType, at: DocumentPath, seen: set[str] | None
    ) -> None:
        key = field.merge_key
        self.directives.in_element(element, key, at)
        if key in element:
            if seen is not None and DIRECTIVE not in element:
                self._check_repeated(repr(element[key]), key, at, seen)
        elif element.get(DIRECTIVE) != "replace" and not self._is_misspelt(key, element, field):
            self.findings.error(
                "no-merge-key",
                f"an element has no {key!r}, by which this list is merged",
                at,
                f"add {key!r}: it tells which element is meant",
            )

    def _check_repeated(self, name: str, key: str, at: DocumentPath, seen: set[str]) -> None:
        if name in seen:
            message = f"another element has {key} {name} as well: the two fold into one if the list exists already"
            self.findings.warning("repeated-element", message, (*at, key))
        seen.add(name)

    @staticmethod
    def _is_misspelt(key: str, element: dict[str, Json], field: FieldType) -> bool:
        """Tell whether the element has a misspelt merge key, which has a finding of its own."""
        assert field.of is not None
        assert field.of.type is not None
        fields = field.of.type.fields
        return any(suggest(name, fields) == key for name in element if name not in fields)

    def _below(self, value: dict[str, Json], at: DocumentPath, reading: Reading) -> Reading:
        """Return how the members of a map are applied: with `$patch: replace` they are copied as they are."""
        is_replaced = reading is Reading.STRATEGIC and value.get(DIRECTIVE) == "replace"
        return Reading.VERBATIM if is_replaced else reading

    def _directive(
        self, key: str, value: Json, holder: dict[str, Json], shape: StructType, at: DocumentPath, reading: Reading
    ) -> None:
        if not key.startswith(DIRECTIVES):
            near = suggest(key, DIRECTIVES)
            hint = f"did you mean {near!r}?" if near else f"the directives are {', '.join(DIRECTIVES)}"
            self.findings.error("unknown-field", f"{key!r} is neither a field nor a directive", at, hint)
        elif reading is not Reading.STRATEGIC:
            self.directives.leaked(key, at)
        else:
            named = field_of(key)
            if named is not None and named not in shape.fields:
                self.unknown_field(named, shape, at)
            else:
                self.directives.in_struct(key, value, holder, shape, at)


def short_name(shape: StructType) -> str:
    return shape.name.rpartition(".")[2]


def _is_removal(value: Json, reading: Reading) -> bool:
    """Tell whether the value is a lone `$patch`, which removes whatever stands there."""
    return reading is Reading.STRATEGIC and isinstance(value, dict) and value == {DIRECTIVE: "delete"}


def _fields_in(schema: Schema, shape: StructType) -> "frozenset[str]":
    try:
        return frozenset(schema.type_named(shape.name).fields)
    except KeyError:
        return frozenset()
