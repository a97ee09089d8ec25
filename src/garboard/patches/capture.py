"""Turning a hand edit into a patch: the smallest one of a type that yields the edited document."""

from collections.abc import Callable, Iterator

from garboard.documents import DocumentPath, Json, equal
from garboard.errors import BadDocument, PatchFailed
from garboard.patches.args import command_of
from garboard.patches.create import create_two_way
from garboard.patches.json6902 import apply_args
from garboard.patches.json_values import Absent, copy_of, same, value_at
from garboard.patches.merge import apply_merge
from garboard.patches.patch import PatchType
from garboard.patches.strategic import apply_strategic
from garboard.rules.command_line import flag_name
from garboard.schema import StructType


def capture_patch(original: Json, modified: Json, type_: PatchType, shape: StructType | None) -> Json:
    """Return the smallest patch of a type that turns `original` into `modified`.

    Smallest means that no part of it can be left out. A change that the type cannot express is refused.
    """
    if type_ is PatchType.JSON:
        return create_json(original, modified)
    patch, apply = _draft(original, modified, type_, shape)

    def yields(candidate: Json) -> bool:
        try:
            return equal(apply(copy_of(original), candidate), modified)
        except PatchFailed:
            return False

    if not yields(patch):
        raise PatchFailed(
            f"a {type_} patch cannot express this change",
            error_class="not-expressible",
            hint="capture it with --type json, which can express any change",
        )
    return _shrunk(patch, yields)


def _draft(
    original: Json, modified: Json, type_: PatchType, shape: StructType | None
) -> tuple[Json, Callable[[Json, Json], Json]]:
    if type_ is PatchType.MERGE:
        return create_merge(original, modified), apply_merge
    if shape is None:
        raise PatchFailed(
            "a strategic patch needs a kind whose fields are known",
            error_class="unsupported-kind",
            hint="name it with --kind, or capture a merge or JSON patch",
        )
    return create_two_way(original, modified, shape), lambda document, patch: apply_strategic(document, patch, shape)


def capture_args(original: Json, modified: Json) -> dict[str, Json] | None:
    """Return the flag patch that turns `original` into `modified`, or None if more than flags differs.

    The order of flags means nothing, except of those that are repeated: new ones come last.
    """
    try:
        before, after = _flags_in(original), _flags_in(modified)
        patch: dict[str, Json] = {name: None for name in before if name not in after}
        for name, values in after.items():
            if before.get(name) != values:
                patch[name] = values[0] if len(values) == 1 else [*values]
        is_all = equal(_by_flag(apply_args(copy_of(original), patch)), _by_flag(copy_of(modified)))
    except PatchFailed:
        return None
    return patch if patch and is_all else None


def _flags_in(document: Json) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for word in command_of(document)[1][1:]:
        found.setdefault(flag_name(word), []).append(word.partition("=")[2])
    return found


def _by_flag(document: Json) -> Json:
    """Return a Pod whose main command has its flags in the order of their names; changed in place."""
    container, command = command_of(document)
    holder = value_at(document, ("spec", "containers", container))
    assert isinstance(holder, dict)
    holder["command"] = [command[0], *sorted(command[1:], key=flag_name)]
    return document


def refuse_other_object(original: Json, modified: Json, sources: tuple[str, str]) -> None:
    """Refuse two documents that are not the same object: a patch cannot make one of the other."""
    for name, path in (
        ("apiVersion", ("apiVersion",)),
        ("kind", ("kind",)),
        ("name", ("metadata", "name")),
        ("namespace", ("metadata", "namespace")),
    ):
        before, after = value_at(original, path), value_at(modified, path)
        if not same(before, after):
            shown = [f"{source} has {'no ' + name if isinstance(each, Absent) else f'{name} {each}'}"
                     for source, each in zip(sources, (before, after), strict=True)]  # fmt: skip
            raise BadDocument(
                f"these are not the same object: {', '.join(shown)}",
                hint="name the document as it was generated, and the same one after your edit",
                error_class="other-object",
            )


def create_merge(original: Json, modified: Json) -> Json:
    """Return the merge patch from `original` to `modified`."""
    if not isinstance(original, dict) or not isinstance(modified, dict):
        return copy_of(modified)
    patch: dict[str, Json] = {key: None for key in original if key not in modified}
    for key, value in modified.items():
        if key in original and isinstance(original[key], dict) and isinstance(value, dict):
            below = create_merge(original[key], value)
            if below:
                patch[key] = below
        elif key not in original or not equal(original[key], value):
            patch[key] = copy_of(value)
    return patch


def create_json(original: Json, modified: Json) -> Json:
    """Return the JSON patch from `original` to `modified`."""
    return list(_operations(original, modified, ""))


def _operations(original: Json, modified: Json, pointer: str) -> Iterator[Json]:
    if equal(original, modified):
        return
    if isinstance(original, dict) and isinstance(modified, dict):
        yield from _map_operations(original, modified, pointer)
    elif isinstance(original, list) and isinstance(modified, list):
        yield from _list_operations(original, modified, pointer)
    else:
        yield {"op": "replace", "path": pointer, "value": copy_of(modified)}


def _map_operations(original: dict[str, Json], modified: dict[str, Json], pointer: str) -> Iterator[Json]:
    for key in original:
        if key not in modified:
            yield {"op": "remove", "path": f"{pointer}/{_escaped(key)}"}
    for key, value in modified.items():
        below = f"{pointer}/{_escaped(key)}"
        if key in original:
            yield from _operations(original[key], value, below)
        else:
            yield {"op": "add", "path": below, "value": copy_of(value)}


def _list_operations(original: list[Json], modified: list[Json], pointer: str) -> Iterator[Json]:
    """Keep what both lists begin and end with; work on the elements between them."""
    start = 0
    while start < min(len(original), len(modified)) and equal(original[start], modified[start]):
        start += 1
    end = 0
    while end < min(len(original), len(modified)) - start and equal(original[-1 - end], modified[-1 - end]):
        end += 1
    old, new = original[start : len(original) - end], modified[start : len(modified) - end]
    for index in range(len(old) - 1, len(new) - 1, -1):
        yield {"op": "remove", "path": f"{pointer}/{start + index}"}
    for index, value in enumerate(new):
        if index < len(old):
            yield from _operations(old[index], value, f"{pointer}/{start + index}")
        else:
            yield {"op": "add", "path": f"{pointer}/{start + index}", "value": copy_of(value)}


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _shrunk(patch: Json, yields: Callable[[Json], bool]) -> Json:
    """Leave out part after part, larger ones first, until every part is needed."""
    changed = True
    while changed:
        changed = False
        for path in sorted(_parts(patch, ()), key=len):
            smaller = _without(patch, path)
            if smaller is not None and yields(smaller):
                patch, changed = smaller, True
    return patch


def _parts(value: Json, path: DocumentPath) -> Iterator[DocumentPath]:
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield (*path, key)
        yield from _parts(member, (*path, key))


def _without(patch: Json, path: DocumentPath) -> Json:
    """Return a copy without the part at `path`; None if an earlier cut has taken it along."""
    smaller = copy_of(patch)
    holder = smaller
    for step in path[:-1]:
        holder = _get(holder, step)
    if _get(holder, path[-1]) is None and not (isinstance(holder, dict) and path[-1] in holder):
        return None
    del holder[path[-1]]  # type: ignore[union-attr, arg-type]
    return smaller


def _get(holder: Json, step: str | int) -> Json:
    if isinstance(holder, dict) and isinstance(step, str):
        return holder.get(step)
    if isinstance(holder, list) and isinstance(step, int) and step < len(holder):
        return holder[step]
    return None
