"""Overlaps that the patches show by themselves, when there is no document to apply them to."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from garboard.documents import DocumentPath, Json, equal
from garboard.patches.args import flags_of
from garboard.patches.findings import Finding
from garboard.patches.overlaps import HEADERS, PatchPlace, overlap_finding
from garboard.patches.patch import Patch, PatchType
from garboard.patches.strategic_fields import DIRECTIVE
from garboard.schema import FieldType, StructType


@dataclass(frozen=True, slots=True)
class Written:
    """One field that a patch writes: list elements are identified by merge key, so that patches can be compared."""

    path: tuple[str, ...]
    at: DocumentPath
    value: Json
    is_whole: bool = False  # everything below goes with it


def find_static_overlaps(patches: Sequence[Patch], shape: StructType | None) -> list[Finding]:
    """Return a warning for every field that two of the patches write, later ones winning over earlier ones."""
    root = FieldType("struct", type=shape) if shape is not None else None
    findings = []
    earlier: dict[tuple[str, ...], tuple[Patch, Written]] = {}
    for patch in patches:
        mine = [each for each in _written(patch, root) if each.path not in HEADERS]
        for write in mine:
            for other, lost in _met(write, earlier):
                is_same = equal(lost.value, write.value) and lost.path == write.path
                findings.append(
                    overlap_finding(
                        PatchPlace(other, lost.at), PatchPlace(patch, write.at), is_same, write.value is None
                    )
                )
        earlier |= {write.path: (patch, write) for write in mine}
    return findings


def _met(write: Written, earlier: dict[tuple[str, ...], tuple[Patch, Written]]) -> Iterator[tuple[Patch, Written]]:
    length = len(write.path)
    if write.path in earlier:
        yield earlier[write.path]
    for end in range(1, length):
        found = earlier.get(write.path[:end])
        if found is not None and found[1].is_whole:
            yield found
    if write.is_whole:
        yield from (found for path, found in earlier.items() if len(path) > length and path[:length] == write.path)


def _written(patch: Patch, root: FieldType | None) -> Iterator[Written]:
    if patch.type is PatchType.JSON:
        yield from _by_operations(patch.value, root)
    elif patch.type is PatchType.ARGS:
        if isinstance(patch.value, dict):
            yield from (
                Written(("command", f"--{name.lstrip('-')}"), (name,), patch.value[name])
                for name in flags_of(patch.value)
            )
    elif isinstance(patch.value, dict):
        yield from _by_members(patch.value, root, (), (), is_strategic=patch.type is PatchType.STRATEGIC)


def _by_members(
    members: dict[str, Json], field: FieldType | None, path: tuple[str, ...], at: DocumentPath, *, is_strategic: bool
) -> Iterator[Written]:
    for key, value in members.items():
        if key.startswith("$"):
            continue
        below = _member(field, key)
        name, place = (*path, key), (*at, key)
        if isinstance(value, dict):
            if is_strategic and DIRECTIVE in value:
                yield Written(name, place, None if value[DIRECTIVE] == "delete" else value, is_whole=True)
            else:
                yield from _by_members(value, below, name, place, is_strategic=is_strategic)
        elif isinstance(value, list) and is_strategic and below is not None and below.strategy == "merge":
            yield from _by_elements(value, below, name, place)
        else:
            yield Written(name, place, value, is_whole=not isinstance(value, str | int | float))


def _by_elements(elements: list[Json], field: FieldType, path: tuple[str, ...], at: DocumentPath) -> Iterator[Written]:
    for index, element in enumerate(elements):
        if not isinstance(element, dict) or field.merge_key not in element:
            continue
        name, place = (*path, f"[{field.merge_key}={element[field.merge_key]!r}]"), (*at, index)
        if DIRECTIVE in element:
            yield Written(name, place, None, is_whole=True)
        else:
            rest = {key: value for key, value in element.items() if key != field.merge_key}
            yield from _by_members(rest, field.of, name, place, is_strategic=True)


def _by_operations(operations: Json, root: FieldType | None) -> Iterator[Written]:
    for index, operation in enumerate(operations if isinstance(operations, list) else ()):
        if not isinstance(operation, dict):
            continue
        for key in _written_pointers(operation):
            pointer = operation.get(key)
            path = (
                _path_of(pointer, root, is_added=operation.get("op") != "replace" and key == "path")
                if isinstance(pointer, str)
                else ()
            )
            if path:
                value = operation.get("value") if key == "path" and operation["op"] != "remove" else None
                yield Written(path, (index, key), value, is_whole=not isinstance(value, str | int | float))


def _written_pointers(operation: dict[str, Json]) -> tuple[str, ...]:
    return {
        "add": ("path",),
        "replace": ("path",),
        "remove": ("path",),
        "copy": ("path",),
        "move": ("from", "path"),
    }.get(str(operation.get("op")), ())


def _path_of(pointer: str, root: FieldType | None, *, is_added: bool) -> tuple[str, ...]:
    """Return the path that a pointer names; nothing if it adds an element to a list, which overwrites none."""
    path: list[str] = []
    field = root
    is_in_list = False
    for token in pointer.split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        is_in_list = field is not None and field.kind == "list"
        path.append(f"[{name}]" if is_in_list else name)
        field = _member(field, name)
    return () if is_in_list and is_added else tuple(path)


def _member(field: FieldType | None, key: str) -> FieldType | None:
    """Return what stands under a name: the field of a struct, the element of a map or list, None if not known."""
    if field is None:
        return None
    return field.type.fields.get(key) if field.kind == "struct" and field.type is not None else field.of
