"""A document after Go has decoded it into a type and encoded it again.

kubeadm does this to every static Pod it patches: unknown fields and nulls vanish, quantities and times take their
canonical form, fields that Go always writes appear (`status: {}`), and a value of the wrong type is an error.
"""

from functools import cache

from garboard.documents import Json
from garboard.errors import BadDocument
from garboard.schema.scalars import READERS, REFUSES_NULL, ZEROS, Mismatch, expected
from garboard.schema.types import FieldType, StructType


def round_trip(document: Json, type_: StructType) -> None:
    """Rewrite `document` in place as Go would after decoding it into `type_`.

    Maps and lists that stay are the same objects as before, so what is known of them by identity stays true; no object
    may stand in the document twice. When the document does not fit the type it may be left half rewritten.
    """
    try:
        if not isinstance(document, dict):
            raise expected("a map", document)
        _rewrite_struct(document, type_)
    except Mismatch as exc:
        path = "".join(reversed(exc.path)).removeprefix(".")
        raise BadDocument(
            f"{path or 'the document'}: {exc.reason}",
            hint=f"correct what writes this field: the document is read as {type_.name}",
            error_class="typed-decode",
        ) from exc


def _rewrite_struct(members: dict[str, Json], type_: StructType) -> None:
    fields = type_.fields
    for name in list(members):
        field = fields.get(name)  # exact: this decoder, unlike a strategic merge, does not forgive case
        if field is None:
            del members[name]
            continue
        value = members[name]
        try:
            written = _rewrite(value, field)
        except Mismatch as exc:
            exc.path.append(f".{name}")
            raise
        if _is_omitted(value, written, field):
            del members[name]
        else:
            members[name] = written
    for name, field in _always_written(type_):
        if name not in members:
            members[name] = _zero(field)


def _rewrite(value: Json, field: FieldType) -> Json:
    """Return what Go writes for `value`; a map or list is rewritten in place."""
    if value is None:
        if field.scalar in REFUSES_NULL and not field.pointer:
            raise expected(f"a {field.scalar}", value)
        return _zero(field)
    match field.kind:
        case "scalar":
            return READERS[field.scalar](value)
        case "struct":
            if not isinstance(value, dict) or field.type is None:
                raise expected("a map", value)
            _rewrite_struct(value, field.type)
        case "list":
            _rewrite_list(value, field)
        case "map":
            _rewrite_map(value, field)
        case "any":
            pass  # written as it was read
    return value


def _rewrite_list(items: Json, field: FieldType) -> None:
    if not isinstance(items, list) or field.of is None:
        raise expected("a list", items)
    for index, item in enumerate(items):
        try:
            items[index] = _rewrite(item, field.of)
        except Mismatch as exc:
            exc.path.append(f"[{index}]")
            raise


def _rewrite_map(entries: Json, field: FieldType) -> None:
    if not isinstance(entries, dict) or field.of is None:
        raise expected("a map", entries)
    for key, value in entries.items():
        try:
            entries[key] = _rewrite(value, field.of)
        except Mismatch as exc:
            exc.path.append(f"[{key}]")
            raise


def _zero(field: FieldType) -> Json:
    """Return what Go writes for a field that is not set."""
    if field.pointer:
        return None
    match field.kind:
        case "scalar":
            return ZEROS.get(field.scalar, 0)
        case "struct" if field.type is not None:
            return {name: _zero(each) for name, each in _always_written(field.type)}
        case _:
            return None


def _is_omitted(value: Json, written: Json, field: FieldType) -> bool:
    """Return whether Go leaves the field out: `omitempty` never counts for a struct, nor for a pointer that is set."""
    if field.pointer or (field.kind == "any" and field.type is None):
        return field.omit_empty and value is None  # a pointer to the zero time is set, though written as null
    if field.type is not None:
        return field.omit_zero and written == _zero(field)
    return field.omit_empty and not written


@cache
def _always_written(type_: StructType) -> tuple[tuple[str, FieldType], ...]:
    """Return the fields that appear even when they were never set."""
    return tuple((name, field) for name, field in type_.fields.items() if not _is_omitted(None, _zero(field), field))
