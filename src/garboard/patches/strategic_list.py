"""Strategic merge of lists: by merge key, as a set of scalars, and the order of the outcome."""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeAlias

from garboard.documents import DocumentPath, Json
from garboard.errors import PatchFailed
from garboard.patches.json_values import ABSENT
from garboard.patches.slots import Slots
from garboard.patches.strategic_fields import DIRECTIVE, Shape
from garboard.patches.trace import Item
from garboard.patches.writer import DocumentWriter
from garboard.schema import StructType, suggest

# What tells two scalars apart: true is not 1, and 1 is not 1.0.
Identity: TypeAlias = "tuple[type, Any]"


class MapMerger(Protocol):
    """What merging a list needs: a writer, and how to merge two maps that share a key."""

    @property
    def writer(self) -> DocumentWriter: ...

    def merge(
        self, original: dict[str, Json], patch: dict[str, Json], shape: Shape, at: DocumentPath
    ) -> dict[str, Json]: ...


def merge_list(
    merger: MapMerger,
    original: list[Json],
    patch: list[Json],
    elements: Shape,
    key: str,
    at: DocumentPath,
    *,
    is_delete_list: bool = False,
    storage: list[Json] | None = None,
) -> list[Json]:
    """Return the merged list. `storage` receives what the merge left in the place of `original` (see `slots`)."""
    if not original and not patch:
        return original
    kind = _element_kind(original, patch, at)
    slots = Slots.over(original)
    if kind is dict:
        if not key:
            raise PatchFailed(
                "this list of maps has no merge key, so it cannot be merged", error_class="no-merge-key", at=at
            )
        merged, order, wanted = _merge_maps(merger, original, slots, patch, elements, key, at)
    elif is_delete_list:
        return _without(merger, original, patch, at)
    else:
        both = slots.append(patch)
        merged = both.deduplicate()
        order, wanted = slots.values(), patch
        _record_added(merger, original, patch, at)
    if storage is not None:
        storage[:] = slots.values()
    mine, rest = _partition(merged, wanted, key, at)
    return _interleave(mine, rest, wanted, order, key, kind, at)


def arrange(
    merged: list[Json],
    order: list[Json],
    seen: list[Json],
    original: list[Json],
    patch: list[Json],
    key: str,
    at: DocumentPath,
) -> list[Json]:
    """Return `merged` in the order that `$setElementOrder` asks for; the rest keep their places in `seen`."""
    _check_order_elements(order, key, at)
    mine, rest = _partition(merged, order, key, at)
    kind = _element_kind(original, patch, at)
    return _interleave(mine, rest, order, seen, key, kind, at)


def check_order(patch: list[Json], order: list[Json], key: str, at: DocumentPath) -> None:
    """Refuse a patch list whose elements are not in the order list, or stand there in another order."""
    if not order or not patch:
        return
    _check_order_elements(order, key, at)
    wanted = [element for element in patch if not (key and _directive(element, at) == "delete")]
    # Both lists are walked once; a directive after the end of the order counts as missing there, as in the reference.
    matched = place = 0
    while matched < len(wanted) and place < len(order):
        element = wanted[matched]
        if isinstance(element, dict) and DIRECTIVE in element:
            matched += 1
            continue
        matched += _same_key(element, order[place], key, at)
        place += 1
    if matched < len(wanted):
        raise PatchFailed(
            "the list contradicts its $setElementOrder: an element is missing there or stands elsewhere",
            error_class="order-mismatch",
            at=at,
        )


def _check_order_elements(order: list[Json], key: str, at: DocumentPath) -> None:
    if key and not all(isinstance(element, dict) for element in order):
        raise PatchFailed(
            f"each element of the order must be a map with {key!r}", error_class="bad-directive-format", at=at
        )


def _directive(element: Json, at: DocumentPath) -> Json:
    return _as_map(element, at).get(DIRECTIVE)


def _same_key(element: Json, other: Json, key: str, at: DocumentPath) -> bool:
    if not key:
        return _identity(element, at) == _identity(other, at)
    return _key_identity(element, key, at) == _key_identity(other, key, at)


def _element_kind(original: Sequence[Json], patch: Sequence[Json], at: DocumentPath) -> type:
    """Return the one type that all elements have; lists of lists and mixed lists are refused."""
    kinds = dict.fromkeys(type(element) for elements in (original, patch) for element in elements)
    if not kinds:
        raise PatchFailed("there is nothing to put in order: both lists are empty", error_class="element-types", at=at)
    if len(kinds) > 1 or list in kinds or type(None) in kinds:
        raise PatchFailed(
            "the elements of a merged list must be of one kind, and neither lists nor null",
            error_class="element-types",
            at=at,
        )
    return next(iter(kinds))


def _merge_maps(
    merger: MapMerger,
    original: list[Json],
    slots: Slots,
    patch: list[Json],
    elements: Shape,
    key: str,
    at: DocumentPath,
) -> tuple[list[Json], list[Json], list[Json]]:
    """Return the merged elements, the order of those that were there, and the patch elements without directives."""
    plain: list[tuple[int, dict[str, Json]]] = []
    is_replaced = False
    left = slots
    for index, element in enumerate(patch):
        assert isinstance(element, dict)
        directive = element.get(DIRECTIVE, ABSENT)
        if directive is ABSENT:
            plain.append((index, element))
        elif directive == "delete":
            left = _delete(merger, original, left, element, key, (*at, index))
        elif directive == "replace":
            is_replaced = True
        else:
            raise PatchFailed(
                f"$patch is {directive!r} in a list element, which is neither 'delete' nor 'replace'",
                error_class="bad-directive",
                at=(*at, index, DIRECTIVE),
            )
    if is_replaced:
        fresh = [merger.writer.copy(element, (*at, index)) for index, element in plain]
        _record_replaced(merger, original, fresh, key, at)
        return fresh, list(fresh), []
    order = left.values()
    merged = _merge_plain(merger, left, plain, elements, key, at)
    return merged, order, [element for _, element in plain]


def _delete(
    merger: MapMerger, original: list[Json], slots: Slots, element: dict[str, Json], key: str, at: DocumentPath
) -> Slots:
    doomed = _key_identity(element, key, at)
    length = len(slots)
    for position in reversed(range(len(slots))):
        found = slots.values()[position]
        assert isinstance(found, dict)
        if key in found and _identity(found[key], at) == doomed:
            slots = slots.without(position)
            merger.writer.record(original, Item.of(found[key]), at, found, ABSENT)
    if len(slots) == length:
        merger.writer.record(original, Item.of(element[key]), at, ABSENT, ABSENT)
        merger.writer.remark("zero-match", f"no element with {key} {element[key]!r} is there to delete", at)
    return slots


def _merge_plain(
    merger: MapMerger,
    slots: Slots,
    plain: Iterable[tuple[int, dict[str, Json]]],
    elements: Shape,
    key: str,
    at: DocumentPath,
) -> list[Json]:
    places = _places(slots.values(), key, at)
    for index, element in plain:
        place = (*at, index)
        identity = _key_identity(element, key, place)
        if identity in places:
            found = slots.values()[places[identity]]
            assert isinstance(found, dict)
            merger.merge(found, element, elements, place)
        else:
            if _is_container(elements) and "image" not in element:
                _remark_no_image(merger, slots.values(), element, key, place)
            places[identity] = len(slots)
            slots = slots.append([merger.writer.copy(element, place)])
    return slots.values()


def _is_container(elements: Shape) -> bool:
    type_ = elements if isinstance(elements, StructType) else elements.type
    return type_ is not None and type_.name == "core/v1.Container"


def _remark_no_image(
    merger: MapMerger, present: Sequence[Json], element: dict[str, Json], key: str, at: DocumentPath
) -> None:
    """Remark on a new container without an image: most likely it means one that is there, under a wrong name."""
    names = [str(each[key]) for each in present if isinstance(each, dict) and key in each]
    near = suggest(str(element[key]), names)
    merger.writer.remark(
        "zero-match",
        f"there is no container {element[key]!r} to change, and a new one needs an image",
        at,
        hint=f"did you mean {near!r}?" if near else f"the containers are {', '.join(names) or 'none'}",
    )


def _places(values: Sequence[Json], key: str, at: DocumentPath) -> dict[Identity, int]:
    places: dict[Identity, int] = {}
    for position, value in enumerate(values):
        if isinstance(value, dict) and key in value:
            places.setdefault(_identity(value[key], at), position)
    return places


def _without(merger: MapMerger, original: list[Json], doomed: list[Json], at: DocumentPath) -> list[Json]:
    places = {_identity(value, at): index for index, value in enumerate(doomed)}
    present = {_identity(value, at) for value in original}
    for identity, index in places.items():
        if identity not in present:
            merger.writer.record(original, Item.of(doomed[index]), (*at, index), ABSENT, ABSENT)
            merger.writer.remark("zero-match", f"{doomed[index]!r} is not in the list to delete", (*at, index))
    kept: list[Json] = []
    for value in original:
        place = places.get(_identity(value, at))
        if place is None:
            kept.append(value)
        else:
            merger.writer.record(original, Item.of(value), (*at, place), value, ABSENT)
    return kept


def _record_added(merger: MapMerger, original: list[Json], added: list[Json], at: DocumentPath) -> None:
    present = {_identity(value, at) for value in original}
    for index, value in enumerate(added):
        before = value if _identity(value, at) in present else ABSENT
        merger.writer.record(original, Item.of(value), (*at, index), before, value)


def _record_replaced(merger: MapMerger, original: list[Json], fresh: list[Json], key: str, at: DocumentPath) -> None:
    kept = _places(fresh, key, at)
    for element in original:
        if isinstance(element, dict) and key in element and _identity(element[key], at) not in kept:
            merger.writer.record(original, Item.of(element[key]), at, element, ABSENT)


def _partition(merged: list[Json], by: list[Json], key: str, at: DocumentPath) -> tuple[list[Json], list[Json]]:
    """Split `merged` into the elements that `by` names and the rest."""
    if key:
        named = {_identity(element[key], at) for element in (_as_map(each, at) for each in by) if key in element}
        is_named = [_key_identity(element, key, at) in named for element in merged]
    else:
        named = {_identity(element, at) for element in by}
        is_named = [_identity(element, at) in named for element in merged]
    mine = [element for element, is_mine in zip(merged, is_named, strict=True) if is_mine]
    return mine, [element for element, is_mine in zip(merged, is_named, strict=True) if not is_mine]


def _interleave(
    mine: list[Json], rest: list[Json], wanted: list[Json], seen: list[Json], key: str, kind: type, at: DocumentPath
) -> list[Json]:
    """Interleave the patch's elements with the rest: the rest go first only where `seen` shows that order."""
    mine = sorted_by_order(mine, wanted, key, kind, at)
    rest = sorted_by_order(rest, seen, key, kind, at)
    places = _order_places(seen, key, kind, at)
    interleaved: list[Json] = []
    i = j = 0
    while i < len(rest) and j < len(mine):
        left = places.get(_element_identity(rest[i], key, kind, at), -1)
        right = places.get(_element_identity(mine[j], key, kind, at), -1)
        if 0 <= left < right:
            interleaved.append(rest[i])
            i += 1
        else:
            interleaved.append(mine[j])
            j += 1
    return [*interleaved, *rest[i:], *mine[j:]]


def sorted_by_order(values: list[Json], order: list[Json], key: str, kind: type, at: DocumentPath) -> list[Json]:
    """Return `values` sorted stably by their place in `order`; delete directives go last."""
    last: list[Json] = []
    if kind is dict:
        for element in (*values, *order):
            _key_identity(element, key, at)
        last = [element for element in values if _directive(element, at) == "delete"]
        values = [element for element in values if _directive(element, at) != "delete"]
    places = _order_places(order, key, kind, at)
    positions = [places.get(_element_identity(value, key, kind, at), -1) for value in values]
    return [*_insertion_sorted(values, positions), *last]


def _insertion_sorted(values: list[Json], positions: list[int]) -> list[Json]:
    """Sort stably by position; a value without one compares as smaller than anything, as in the reference."""
    if -1 not in positions:
        return [value for _, _, value in sorted(zip(positions, range(len(values)), values, strict=True), key=_place)]
    pairs = list(zip(positions, values, strict=True))
    for end in range(1, len(pairs)):
        at = end
        while at > 0 and (-1 in (pairs[at][0], pairs[at - 1][0]) or pairs[at][0] < pairs[at - 1][0]):
            pairs[at], pairs[at - 1] = pairs[at - 1], pairs[at]
            at -= 1
    return [value for _, value in pairs]


def _place(entry: tuple[int, int, Json]) -> tuple[int, int]:
    return entry[0], entry[1]


def _order_places(order: list[Json], key: str, kind: type, at: DocumentPath) -> dict[Identity, int]:
    places: dict[Identity, int] = {}
    for position, element in enumerate(order):
        places.setdefault(_element_identity(element, key, kind, at), position)
    return places


def _element_identity(element: Json, key: str, kind: type, at: DocumentPath) -> Identity:
    if kind is dict:
        return _identity(element.get(key) if isinstance(element, dict) else None, at)
    return _identity(element, at)


def _key_identity(element: Json, key: str, at: DocumentPath) -> Identity:
    members = _as_map(element, at)
    if key not in members:
        raise PatchFailed(f"an element has no {key!r}, the merge key of this list", error_class="no-merge-key", at=at)
    return _identity(members[key], at)


def _as_map(element: Json, at: DocumentPath) -> dict[str, Json]:
    if not isinstance(element, dict):
        raise PatchFailed("the elements of this list must be maps", error_class="element-types", at=at)
    return element


def _identity(value: Json, at: DocumentPath) -> Identity:
    if isinstance(value, dict | list):
        raise PatchFailed("a map or list cannot tell elements apart", error_class="element-types", at=at)
    return type(value), value
