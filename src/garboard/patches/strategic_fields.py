"""The directives of strategic merge, and how it looks up fields: with the answers and refusals of the Go code."""

from typing import TypeAlias

from garboard.documents import DocumentPath
from garboard.errors import PatchFailed
from garboard.schema import FieldType, StructType

# Keys of a patch that say what to do instead of what to set.
DIRECTIVE = "$patch"
RETAIN_KEYS = "$retainKeys"
SET_ORDER = "$setElementOrder"
DELETE_FROM_LIST = "$deleteFromPrimitiveList"

WITH_FIELD = (SET_ORDER, DELETE_FROM_LIST)  # written `$directive/FIELD`
DIRECTIVES = (DIRECTIVE, RETAIN_KEYS, *WITH_FIELD)

Shape: TypeAlias = StructType | FieldType


def member_shape(shape: Shape, key: str, at: DocumentPath) -> FieldType:
    """Return the field that a map of this shape has under `key`; a plain map or an unknown field is refused."""
    struct = _struct(shape, at)
    found = struct.field(key)
    if found is None:
        raise PatchFailed(f"{struct.name} has no field {key!r}", error_class="unknown-field", at=at)
    return found


def element_shape(field: FieldType, at: DocumentPath) -> FieldType:
    """Return the shape of the elements of a list field; a field that is no list is refused, unless it is a pointer."""
    if field.kind == "list" and field.of is not None:
        if field.of.kind == "list" and not field.pointer:
            raise PatchFailed("a list of lists cannot be merged", error_class="element-types", at=at)
        return field.of
    if field.pointer:
        return field
    raise PatchFailed("both sides hold a list, but the field is not a list", error_class="not-a-list", at=at)


def _struct(shape: Shape, at: DocumentPath) -> StructType:
    if isinstance(shape, StructType):
        return shape
    if shape.type is not None:
        return shape.type
    raise PatchFailed(
        "maps or lists below a plain map cannot be merged: its values have no fields",
        error_class="not-a-struct",
        at=at,
        hint="patch this member with a merge or JSON patch",
    )
