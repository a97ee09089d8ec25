"""Whether two strategic patches set the same field to different values."""

from garboard.documents import Json, equal
from garboard.errors import PatchFailed
from garboard.patches.json_values import go_text
from garboard.patches.slots import Slots
from garboard.patches.strategic_fields import DIRECTIVE, RETAIN_KEYS, Shape, element_shape, member_shape


def has_conflict(left: Json, right: Json, shape: Shape | None, strategy: str = "", key: str = "") -> bool:
    """Return whether `left` and `right`, two patches of one type, overlap with different values."""
    if isinstance(left, dict):
        if not isinstance(right, dict) or not equal(left.get(DIRECTIVE), right.get(DIRECTIVE)):
            return True
        if (DIRECTIVE in left) != (DIRECTIVE in right):
            return True
        return strategy != "replace" and _maps_conflict(left, right, shape)
    if isinstance(left, list):
        return not isinstance(right, list) or _lists_conflict(left, right, shape, strategy, key)
    return not equal(left, right)


def _maps_conflict(left: dict[str, Json], right: dict[str, Json], shape: Shape | None) -> bool:
    for name, value in left.items():
        if name in (DIRECTIVE, RETAIN_KEYS) or name not in right:
            continue
        strategy = key = ""
        below: Shape | None = None
        if isinstance(value, dict | list):
            if shape is None:
                raise PatchFailed(f"the type of {name!r} is not known", error_class="not-a-struct", at=(name,))
            field = member_shape(shape, name, (name,))
            strategy, key = field.strategy, field.merge_key
            below = element_shape(field, (name,)) if isinstance(value, list) else field
        if has_conflict(value, right[name], below, strategy, key):
            return True
    return False


def _lists_conflict(left: list[Json], right: list[Json], shape: Shape | None, strategy: str, key: str) -> bool:
    kinds = {type(element) for element in (*left, *right)}
    if len(kinds) != 1 or kinds & {list, type(None)}:
        raise PatchFailed("the elements of a merged list must be of one kind", error_class="element-types")
    if strategy == "merge":
        return kinds == {dict} and _elements_conflict(_by_key(left, key), _by_key(right, key), shape)
    if len(left) != len(right):
        return True
    if kinds != {dict}:
        left, right = _unique_and_sorted(left), _unique_and_sorted(right)
        if len(left) > len(right):
            return True
    return any(has_conflict(mine, theirs, shape) for mine, theirs in zip(left, right, strict=False))


def _unique_and_sorted(values: list[Json]) -> list[Json]:
    """Return the values without repeats, in the order of their text.

    The reference does this in the list's own storage, so the list in the patch that it returns is changed as well.
    """
    slots = Slots.over(values)
    kept = sorted(slots.deduplicate(), key=go_text)
    values[:] = [*kept, *slots.values()[len(kept) :]]
    return kept


def _elements_conflict(left: dict[str, Json], right: dict[str, Json], shape: Shape | None) -> bool:
    return any(has_conflict(value, right[name], shape) for name, value in left.items() if name in right)


def _by_key(elements: list[Json], key: str) -> dict[str, Json]:
    keyed: dict[str, Json] = {}
    for element in elements:
        if not isinstance(element, dict) or key not in element:
            raise PatchFailed(f"an element has no {key!r}, the merge key of this list", error_class="no-merge-key")
        keyed[go_text(element[key])] = element
    return keyed
