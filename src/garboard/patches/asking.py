"""Asking for a field by name: its history, or a refusal that names the field that was probably meant."""

from dataclasses import dataclass

from garboard.documents import Json
from garboard.errors import BadDocument
from garboard.patches.fieldpath import FieldPath, Nameless, Pick, Segment, element_name, show_path, step_to
from garboard.patches.history import History
from garboard.patches.json_values import Absent
from garboard.patches.origins import Origins
from garboard.schema import FieldType, Schema, StructType, suggest


def asked_history(text: str, origins: Origins, schema: Schema) -> History:
    """Return the history of the field that `text` names; a name that is misspelt is refused."""
    field = FieldPath.parse(text)
    history = origins.history(field)
    if isinstance(history.value, Absent) and not history.events and not history.causes:
        refuse_misspelt(field, origins.document, origins.shape, schema)
    return history


@dataclass(frozen=True, slots=True)
class _Place:
    """What stands before a segment of a path: a value (None if nothing is there) and what is known of its type."""

    value: Json
    type: FieldType | None
    shown: str


def refuse_misspelt(field: FieldPath, document: Json, shape: StructType | None, schema: Schema) -> None:
    """Refuse a path with a name that the type does not have, or that is nearly one of those that are there."""
    place = _Place(document, FieldType("struct", type=shape) if shape else None, "")
    path: tuple[str | int, ...] = ()
    for segment in field.segments:
        step = step_to(place.value, segment)
        if step is None:
            _refuse_unknown(segment, place, schema)
        elif isinstance(place.value, dict | list):
            path = (*path, step)
        value = place.value[step] if step is not None else None  # type: ignore[index]
        shown = show_path(path, document) if step is not None else f"{place.shown}.{segment}".lstrip(".")
        place = _Place(value, type_below(place.type, segment), shown)


def _refuse_unknown(segment: Segment, place: _Place, schema: Schema) -> None:
    """Refuse a name that the type does not have, or that is nearly one of those that are there."""
    holder, name = place.value, segment.value if isinstance(segment, Pick) else str(segment)
    if isinstance(segment, int | Nameless):
        return
    if place.type is not None and place.type.kind == "struct" and place.type.type is not None:
        struct = place.type.type
        if name in struct.fields or struct.self_written:
            return
        kind = struct.name.rpartition(".")[2]
        message = f"{kind} of Kubernetes {schema.version.as_minor} has no field {name!r}"
        near = suggest(name, [*struct.fields, *(holder if isinstance(holder, dict) else ())])
        raise BadDocument(
            f"{place.shown}: {message}" if place.shown else message,
            hint=f"did you mean {near!r}?" if near else f"the fields are {', '.join(sorted(struct.fields))}",
            error_class="unknown-field",
        )
    _refuse_without_index(segment, name, place)
    known = _flags_of(holder, schema) if name.startswith("-") else set()
    if name not in known:
        there = list(holder) if isinstance(holder, dict) else _element_names(holder)
        _refuse_near(name, [*there, *known], place)
        _refuse_element(segment, name, place)


def _refuse_without_index(segment: Segment, name: str, place: _Place) -> None:
    """Refuse a field of the elements of a list that does not say which element."""
    of = place.type.of if place.type is not None and place.type.kind == "list" else None
    if of is not None and of.type is not None and name in of.type.fields and not isinstance(segment, Pick):
        first = next(iter(_element_names(place.value)), "0")
        raise BadDocument(
            f"{place.shown} is a list: {name!r} is a field of its elements",
            hint=f"name an element: {place.shown}[{first}].{name}",
            error_class="unknown-field",
        )


def _refuse_near(name: str, names: list[str], place: _Place) -> None:
    near = suggest(name, names)
    if near is not None:
        raise BadDocument(
            f"there is no {name!r} in {place.shown or 'the document'}",
            hint=f"did you mean {near!r}?",
            error_class="unknown-field",
        )


def _refuse_element(segment: Segment, name: str, place: _Place) -> None:
    """Refuse an element that a list of named elements does not have."""
    elements = place.value if isinstance(place.value, list) else []
    names = _element_names(elements)
    if isinstance(segment, Pick) and names and all(isinstance(each, dict) for each in elements):
        raise BadDocument(
            f"there is no {name!r} in {place.shown or 'the document'}",
            hint=f"its elements are {', '.join(names)}",
            error_class="unknown-field",
        )


def _element_names(holder: Json) -> list[str]:
    elements = holder if isinstance(holder, list) else []
    return [name for name in map(element_name, elements) if name]


def _flags_of(command: Json, schema: Schema) -> set[str]:
    """Return the flags of the program that a command list runs, if they are known."""
    first = command[0] if isinstance(command, list) and command else None
    component = schema.component(first.rpartition("/")[2]) if isinstance(first, str) else None
    return {f"--{name}" for name in component.flags} if component else set()


def type_below(field: FieldType | None, segment: Segment) -> FieldType | None:
    """Return the type of a member or element, as far as it is known."""
    if field is None:
        return None
    if field.kind == "struct" and field.type is not None:
        return field.type.fields.get(str(segment))
    return field.of
