"""Computing a strategic patch: two-way from one document to another, three-way as `kubectl apply` does.

The functions here may sort the lists of their arguments in place, as the reference does: later comparisons see that
order.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from garboard.documents import Json, equal
from garboard.errors import BadUsage, PatchFailed
from garboard.patches.conflicts import has_conflict
from garboard.patches.json_values import copy_of, go_text
from garboard.patches.slots import Slots
from garboard.patches.strategic import combine_patches
from garboard.patches.strategic_fields import (
    DELETE_FROM_LIST,
    DIRECTIVE,
    RETAIN_KEYS,
    SET_ORDER,
    Shape,
    element_shape,
    member_shape,
)
from garboard.patches.strategic_list import sorted_by_order
from garboard.schema import StructType


@dataclass(frozen=True, slots=True)
class DiffRules:
    """Which half of a difference to compute, and which directives to write with it."""

    with_additions: bool = True
    with_deletions: bool = True
    with_order: bool = True
    with_retained: bool = False


def create_two_way(
    original: Json, modified: Json, shape: StructType, preconditions: Sequence[str] = ()
) -> dict[str, Json]:
    """Return the strategic patch that turns `original` into `modified`."""
    patch = diff_maps(_object(original, "original"), _object(modified, "modified"), shape, DiffRules())
    _check_preconditions(patch, preconditions)
    return patch


def create_three_way(
    original: Json,
    modified: Json,
    current: Json,
    shape: StructType,
    *,
    overwrite: bool = True,
    preconditions: Sequence[str] = (),
) -> dict[str, Json]:
    """Return the patch from `current` to `modified`; it deletes only what `original` had and `modified` dropped."""
    last_applied, wanted, live = (
        _object(document, name)
        for document, name in ((original, "original"), (modified, "modified"), (current, "current"))
    )
    delta = diff_maps(live, wanted, shape, DiffRules(with_deletions=False))
    deletions = diff_maps(last_applied, wanted, shape, DiffRules(with_additions=False))
    patch = combine_patches(deletions, delta, shape)
    _check_preconditions(patch, preconditions)
    if not overwrite:
        changed = diff_maps(last_applied, live, shape, DiffRules(with_order=False))
        if has_conflict(patch, changed, shape):
            raise PatchFailed(
                "the patch and the live object changed the same field in different ways",
                error_class="conflict",
                hint="look at the live object, then create the patch with --overwrite true",
            )
    return patch


def diff_maps(original: dict[str, Json], modified: dict[str, Json], shape: Shape, rules: DiffRules) -> dict[str, Json]:
    """Return the patch map from `original` to `modified`; empty if the rules find no difference."""
    patch: dict[str, Json] = {}
    for key, value in modified.items():
        if key not in original:
            if rules.with_additions:
                patch[key] = copy_of(value)
        elif key == DIRECTIVE:
            _diff_directive(original[key], value, patch)
        else:
            _diff_member(key, original[key], value, shape, rules, patch)
    vanished = [key for key in original if key not in modified]
    if rules.with_deletions:
        patch.update(dict.fromkeys(vanished))
    if rules.with_retained:
        retained: list[Json] = [key for key, value in modified.items() if value is not None]
        if retained and (patch or any(original[key] is not None for key in vanished)):
            patch[RETAIN_KEYS] = _sorted_as_text(retained)
    return patch


def _diff_directive(original: Json, modified: Json, patch: dict[str, Json]) -> None:
    if not isinstance(original, str) or not isinstance(modified, str):
        raise PatchFailed(f"{DIRECTIVE} must be text", error_class="bad-directive")
    if original != modified:
        patch[DIRECTIVE] = modified


def _diff_member(
    key: str, original: Json, modified: Json, shape: Shape, rules: DiffRules, patch: dict[str, Json]
) -> None:
    if isinstance(original, dict) and isinstance(modified, dict):
        _diff_map_member(key, original, modified, shape, rules, patch)
    elif isinstance(original, list) and isinstance(modified, list):
        _diff_list_member(key, original, modified, shape, rules, patch)
    elif rules.with_additions and not equal(original, modified):
        patch[key] = copy_of(modified)


def _diff_map_member(
    key: str,
    original: dict[str, Json],
    modified: dict[str, Json],
    shape: Shape,
    rules: DiffRules,
    patch: dict[str, Json],
) -> None:
    try:
        field = member_shape(shape, key, (key,))
    except PatchFailed:
        if equal(original, modified):
            return
        raise
    if field.strategy == "replace":
        if rules.with_additions:
            patch[key] = copy_of(modified)
        return
    difference = diff_maps(original, modified, field, replace(rules, with_retained=field.retain_keys))
    if difference:
        patch[key] = difference


def _diff_list_member(
    key: str, original: list[Json], modified: list[Json], shape: Shape, rules: DiffRules, patch: dict[str, Json]
) -> None:
    try:
        field = member_shape(shape, key, (key,))
        elements = element_shape(field, (key,))
    except PatchFailed:
        if equal(original, modified):
            return
        raise
    if field.strategy != "merge":
        if rules.with_additions and not equal(original, modified):
            patch[key] = copy_of(modified)
        return
    within = replace(rules, with_retained=field.retain_keys)
    changed, deleted, order = diff_lists(original, modified, elements, field.merge_key, within)
    parts = {key: changed, f"{DELETE_FROM_LIST}/{key}": deleted, f"{SET_ORDER}/{key}": order}
    patch |= {name: value for name, value in parts.items() if value}


def diff_lists(
    original: list[Json], modified: list[Json], elements: Shape, key: str, rules: DiffRules
) -> tuple[list[Json], list[Json], list[Json]]:
    """Return the patch list, the list of deleted scalars and the order list."""
    if not original:
        return (list(map(copy_of, modified)) if rules.with_additions else []), [], []
    kinds = {type(element) for element in (*original, *modified)}
    if len(kinds) > 1 or kinds & {list, type(None)}:
        raise PatchFailed("the elements of a merged list must be of one kind", error_class="element-types")
    if kinds == {dict}:
        return _diff_lists_of_maps(original, modified, elements, key, rules)
    return _diff_lists_of_scalars(original, modified, rules)


def _diff_lists_of_maps(
    original: list[Json], modified: list[Json], elements: Shape, key: str, rules: DiffRules
) -> tuple[list[Json], list[Json], list[Json]]:
    changed, deleted = _pair_by_key(original, modified, elements, key, rules)
    patch = [*sorted_by_order(changed, modified, key, dict, ()), *deleted]
    is_reordered = len(original) != len(modified) or any(
        not equal(_key_of(old, key), _key_of(new, key)) for old, new in zip(original, modified, strict=True)
    )
    wants_order = (rules.with_additions and (patch or is_reordered)) or (rules.with_deletions and patch)
    order: list[Json] = []
    if rules.with_order and wants_order:
        order = [{key: copy_of(_key_of(element, key))} for element in modified]
    return patch, [], order


def _pair_by_key(
    original: list[Json], modified: list[Json], elements: Shape, key: str, rules: DiffRules
) -> tuple[list[Json], list[Json]]:
    """Walk both lists in the order of their keys' text; return changed or new elements, and delete directives."""
    changed: list[Json] = []
    deleted: list[Json] = []
    before, after = _sorted_by_key(original, key), _sorted_by_key(modified, key)
    i = j = 0
    while i < len(before) or j < len(after):
        old = before[i] if i < len(before) else None
        new = after[j] if j < len(after) else None
        old_text = go_text(old[key]) if old is not None else ""
        new_text = go_text(new[key]) if new is not None else ""
        if old is not None and new is not None and old_text == new_text:
            difference = diff_maps(old, new, elements, rules)
            if difference:
                changed.append({**difference, key: copy_of(new[key])})
            i, j = i + 1, j + 1
        elif new is not None and (old is None or old_text > new_text):
            if rules.with_additions:
                changed.append(copy_of(new))
            j += 1
        elif old is not None:
            if rules.with_deletions:
                deleted.append({key: copy_of(old[key]), DIRECTIVE: "delete"})
            i += 1
    return changed, deleted


def _sorted_by_key(elements: list[Json], key: str) -> list[dict[str, Json]]:
    maps = []
    for element in elements:
        _key_of(element, key)
        assert isinstance(element, dict)
        maps.append(element)
    maps.reverse()  # the reference's comparison calls equal texts "smaller" both ways, which reverses equal keys
    return sorted(maps, key=lambda element: go_text(element[key]))


def _key_of(element: Json, key: str) -> Json:
    if not isinstance(element, dict) or key not in element:
        raise PatchFailed(f"an element has no {key!r}, the merge key of this list", error_class="no-merge-key")
    return element[key]


def _diff_lists_of_scalars(
    original: list[Json], modified: list[Json], rules: DiffRules
) -> tuple[list[Json], list[Json], list[Json]]:
    original[:] = _sorted_as_text(original)
    added, deleted = _walk_scalars(original, _sorted_as_text(modified), rules)
    patch = sorted_by_order(added, modified, "", str, ())
    is_changed = rules.with_additions and not equal(original, modified)
    wants_order = rules.with_order and ((rules.with_deletions and deleted) or is_changed)
    return patch, deleted, list(modified) if wants_order else []


def _walk_scalars(before: list[Json], after: list[Json], rules: DiffRules) -> tuple[list[Json], list[Json]]:
    added: list[Json] = []
    deleted: list[Json] = []
    i = j = 0
    while i < len(before) or j < len(after):
        old_text = go_text(before[i]) if i < len(before) else None
        new_text = go_text(after[j]) if j < len(after) else None
        if old_text == new_text:
            i, j = i + 1, j + 1
        elif new_text is not None and (old_text is None or old_text > new_text):
            if rules.with_additions:
                added.append(after[j])
            j += 1
        else:
            if rules.with_deletions:
                deleted.append(before[i])
            i += 1
    return added, Slots.over(deleted).deduplicate()


def _sorted_as_text(values: Sequence[Json]) -> list[Json]:
    turned = list(reversed(values))
    return sorted(turned, key=go_text)


def _object(document: Json, name: str) -> dict[str, Json]:
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise PatchFailed(f"the {name} document must be an object", error_class="bad-document")
    copied = copy_of(document)
    assert isinstance(copied, dict)
    return copied


def _check_preconditions(patch: dict[str, Json], preconditions: Sequence[str]) -> None:
    """Refuse a patch that touches one of the named members: KEY at the top, or metadata.KEY."""
    for name in preconditions:
        parent, dot, key = name.partition(".")
        holder: Json = patch
        if dot:
            if parent != "metadata":
                raise BadUsage(
                    f"{name!r} is not a precondition", hint="write KEY or metadata.KEY, such as metadata.name"
                )
            holder = patch.get("metadata")
        if isinstance(holder, dict) and (key if dot else parent) in holder:
            raise PatchFailed(
                f"the patch would change {name}, which a precondition forbids",
                error_class="precondition",
                hint=f"keep {name} as it is, or make a new object",
            )
