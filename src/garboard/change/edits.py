"""Edits of single fields, as `--set` and `--unset` write them: `apiServer.extraArgs[profiling]=false`."""

import re
from collections.abc import Mapping
from copy import deepcopy
from typing import Literal

from garboard.change.attribute import CLUSTER, INIT, JOIN, STORED_KINDS
from garboard.change.merging import MERGED_LISTS
from garboard.documents import Json, read_yaml
from garboard.errors import BadDocument, BadUsage
from garboard.patches.fieldpath import FieldPath, Pick
from garboard.schema import FieldType, Schema, StructType, suggest
from garboard.values import dataclass

Operator = Literal["=", "+=", "-=", "unset"]
_EDIT = re.compile(
    r"(?s)(?:(?P<kind>[A-Z]\w*):)?(?P<path>(?:[^=\[\]+-]|\[[^\]]*\]|[+-](?!=))+)(?P<operator>\+=|-=|=)(?P<value>.*)"
)
_KINDS = (*STORED_KINDS, INIT, JOIN)
_SHOWN = 120  # characters of an edit, in what is said about it


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldEdit:
    """One edit; `text` is the value as it was written, which the type of the field decides how to read.

    `written` is the beginning of it all, for messages.
    """

    kind: str
    path: FieldPath
    operator: Operator
    text: str = ""
    written: str = ""

    @classmethod
    def parse(cls, written: str) -> "FieldEdit":
        """Read PATH=VALUE, PATH+=VALUE or PATH-=VALUE, with the kind before a colon unless it is the cluster's."""
        found = _EDIT.fullmatch(written)
        written = written[:_SHOWN]
        if found is None:
            raise BadUsage(f"{written!r} is no PATH=VALUE", hint="write it as 'apiServer.extraArgs[profiling]=false'")
        kind = _kind(found["kind"], written)
        operator: Operator = "=" if found["operator"] == "=" else "+=" if found["operator"] == "+=" else "-="
        return cls(
            kind=kind, path=FieldPath.parse(found["path"]), operator=operator, text=found["value"], written=written
        )

    @classmethod
    def removal(cls, written: str) -> "FieldEdit":
        """Read the path of a field that is to be removed."""
        kind, _, path = written.partition(":") if re.match(r"[A-Z]\w*:", written) else ("", "", written)
        shown = written[:_SHOWN]
        return cls(kind=_kind(kind, shown), path=FieldPath.parse(path), operator="unset", written=shown)


def _kind(text: str | None, written: str) -> str:
    if not text:
        return CLUSTER
    if text not in _KINDS:
        near = suggest(text, _KINDS)
        hint = f"did you mean {near}?" if near else f"it is one of {', '.join(_KINDS)}"
        raise BadUsage(f"{written!r}: {text} is no configuration that a cluster stores", hint=hint)
    return text


def edited(document: Mapping[str, Json], edit: FieldEdit, schema: Schema, api_version: str) -> dict[str, Json]:
    """Return a document with one edit made; the path has to fit the type of the document."""
    shape = schema.type_of(api_version, edit.kind)
    assert shape is not None, f"the type data lacks {edit.kind}"
    result = deepcopy(dict(document))
    _descend(result, FieldType("struct", type=shape), list(edit.path.segments), edit)
    return result


def _descend(holder: Json, field: FieldType, segments: list[object], edit: FieldEdit) -> None:
    """Follow the path through a map or struct; lists end it, with the name of an item."""
    segment, *rest = segments or [None]
    name = segment.value if isinstance(segment, Pick) else segment
    if not isinstance(name, str) or not isinstance(holder, dict):
        raise _refused(edit, "the path does not fit the field")
    below = _field_below(field, name, edit)
    if below.kind == "list":
        _edit_list(holder, name, below, rest, edit)
    elif rest:
        inner = holder.get(name)
        if not isinstance(inner, dict):
            if edit.operator in ("unset", "-="):
                return
            inner = holder[name] = {}
        if below.kind not in ("struct", "map"):
            raise _refused(edit, f"{name} has nothing below it")
        _descend(inner, below, rest, edit)
    elif edit.operator == "unset":
        holder.pop(name, None)
    elif edit.operator != "=":
        raise _refused(edit, f"{name} is no list")
    else:
        holder[name] = value_of(edit.text, below, edit)


def _field_below(field: FieldType, name: str, edit: FieldEdit) -> FieldType:
    if field.kind == "map" and field.of is not None:
        return field.of
    shape: StructType | None = field.type
    found = shape.fields.get(name) if shape is not None and field.kind == "struct" else None
    if found is None:
        near = suggest(name, shape.fields) if shape is not None else None
        hint = f"did you mean {near!r}?" if near else _elsewhere(name, edit)
        raise BadUsage(f"{edit.written!r}: {edit.kind} has no field {name!r} there", hint=hint)
    return found


def _elsewhere(name: str, edit: FieldEdit) -> str:
    return f"another kind is written before the path, as in KubeletConfiguration:{name}" if edit.kind == CLUSTER else ""


def _edit_list(holder: dict[str, Json], name: str, field: FieldType, rest: list[object], edit: FieldEdit) -> None:
    found = holder.get(name)
    current = list(found) if isinstance(found, list) else []
    how = MERGED_LISTS.get(name)
    if not rest:
        after = _whole_list(current, field, edit)
    elif how in ("repeated", "named"):
        after = _named_item(current, field, rest, edit, is_repeated=how == "repeated")
    elif isinstance(rest[0], Pick | str) and len(rest) == 1 and edit.operator == "unset":
        item = rest[0].value if isinstance(rest[0], Pick) else rest[0]
        after = [each for each in current if str(each) != item]
    else:
        raise _refused(edit, f"{name} is a list without names: write it whole, or with += and -=")
    if after:
        holder[name] = after
    else:
        holder.pop(name, None)


def _whole_list(current: list[Json], field: FieldType, edit: FieldEdit) -> list[Json]:
    assert field.of is not None
    if edit.operator == "unset":
        return []
    if edit.operator == "=":
        value = _read(edit)
        if value is None:
            return []
        if not isinstance(value, list):
            raise _refused(edit, "a list takes [a, b], or single values with += and -=")
        return value
    if field.of.kind != "scalar":
        raise _refused(edit, "name the item, as in extraArgs[profiling]=false")
    value = value_of(edit.text, field.of, edit)
    rest = [each for each in current if each != value]
    return rest if edit.operator == "-=" else current if value in current else [*rest, value]


def _named_item(
    current: list[Json], field: FieldType, rest: list[object], edit: FieldEdit, *, is_repeated: bool
) -> list[Json]:
    """Return a list of items with names, with one item set, extended by another of its name, or removed."""
    name = rest[0].value if isinstance(rest[0], Pick) else rest[0]
    if not isinstance(name, str) or field.of is None or field.of.type is None:
        raise _refused(edit, "items are named, not numbered")
    if isinstance(rest[0], Pick) and rest[0].key not in ("", "name"):
        raise _refused(edit, f"items are found by name, and not by {rest[0].key}")
    places = [index for index, each in enumerate(current) if isinstance(each, dict) and each.get("name") == name]
    others = [each for index, each in enumerate(current) if index not in places]
    own = [current[index] for index in places]
    at = places[0] if places else len(current)
    if len(rest) > 1:
        item: dict[str, Json] = dict(own[0]) if own and isinstance(own[0], dict) else {"name": name}
        _descend(item, FieldType("struct", type=field.of.type), rest[1:], edit)
        return [*others[:at], item, *others[at:]]
    if edit.operator == "unset":
        return others
    if "value" not in field.of.type.fields:
        raise _refused(edit, f"set the fields of {name} one by one, as in extraVolumes[{name}].hostPath=/path")
    value = value_of(edit.text, field.of.type.fields["value"], edit)
    if edit.operator == "-=":
        kept = [each for each in own if not (isinstance(each, dict) and each.get("value") == value)]
        return [*others[:at], *kept, *others[at:]]
    more = own if edit.operator == "+=" and is_repeated else []
    return [*others[:at], *more, {"name": name, "value": value}, *others[at:]]


def value_of(text: str, field: FieldType, edit: FieldEdit) -> Json:
    """Return the value of a text for a field: where the field takes text, as it stands, and else as YAML reads it."""
    is_text = field.kind == "scalar" and field.scalar in ("string", "duration", "quantity", "time")
    try:
        value = _read(edit)
    except BadUsage:
        if not is_text:
            raise
        return text  # an asterisk, say, which means something to YAML
    # Values are scalars: to YAML the address `::` is a mapping.
    return text.strip() if is_text and not isinstance(value, str) else value


def _read(edit: FieldEdit) -> Json:
    try:
        return read_yaml(edit.text, source=edit.written) if edit.text.strip() else ""
    except BadDocument as error:
        raise _refused(edit, f"the value is no YAML: {error.message}") from error


def _refused(edit: FieldEdit, message: str) -> BadUsage:
    return BadUsage(f"{edit.written!r}: {message}", hint="garboard change plan --help has examples")
