"""Carrying a change over to what a node really has, so that what is not asked for stays as it is.

A manifest on disk differs from the rendered one for good reasons (a proxy, authorities of the distribution, the members
that etcd joined) and for others (an edit by hand). Neither is ours to drop: only what differs between the former and
the new rendering is changed.
"""

from collections.abc import Sequence

from garboard.documents import Json, equal
from garboard.patches import copy_of
from garboard.values import dataclass

_KEYS = ("name", "mountPath", "key")


@dataclass(frozen=True, slots=True)
class EditConflict:
    """A place that is to be changed, and that was changed by hand to something else."""

    path: tuple[str, ...]
    found: Json
    wanted: Json


def carried(base: Json, target: Json, live: Json) -> tuple[Json, tuple[EditConflict, ...]]:
    """Return `live` with what differs between `base` and `target` changed, and the places where it conflicts."""
    conflicts: list[EditConflict] = []
    return _carry(base, target, live, (), conflicts), tuple(conflicts)


def _carry(base: Json, target: Json, live: Json, path: tuple[str, ...], conflicts: list[EditConflict]) -> Json:
    if equal(base, target) or equal(live, target):
        return live
    if equal(live, base):
        return copy_of(target)
    if isinstance(base, dict) and isinstance(target, dict) and isinstance(live, dict):
        found = dict(live)
        for name in dict.fromkeys((*base, *target)):
            if not equal(base.get(name), target.get(name)):
                value = _carry(base.get(name), target.get(name), live.get(name), (*path, name), conflicts)
                _put(found, name, value)
        return found
    if isinstance(base, list | None) and isinstance(target, list | None) and isinstance(live, list | None):
        return _carry_list(base or [], target or [], live or [], path, conflicts)
    if not equal(live, base):
        conflicts.append(EditConflict(path, live, target))
    return copy_of(target)


def _put(holder: dict[str, Json], name: str, value: Json) -> None:
    if value is None:
        holder.pop(name, None)
    else:
        holder[name] = value


def _carry_list(
    base: Sequence[Json],
    target: Sequence[Json],
    live: Sequence[Json],
    path: tuple[str, ...],
    conflicts: list[EditConflict],
) -> list[Json]:
    """Carry a list over by the names of its elements, or the flags that they are; else as a whole."""
    keyed = [_by_name(each) for each in (base, target, live)]
    if any(each is None for each in keyed):
        if not equal([*live], [*base]):
            conflicts.append(EditConflict(path, [*live], [*target]))
        return [copy_of(each) for each in target]
    old, new, found = (dict(each or {}) for each in keyed)
    for name in dict.fromkeys((*old, *new)):
        before, after = old.get(name), new.get(name)
        if before == after:
            continue
        value = _carry_element(before, after, found.get(name), (*path, name), conflicts)
        if value:
            found[name] = value
        else:
            found.pop(name, None)
    return [element for name in _placed([*found], [*new], live) for element in found[name]]


def _carry_element(
    before: list[Json] | None,
    after: list[Json] | None,
    live: list[Json] | None,
    path: tuple[str, ...],
    conflicts: list[EditConflict],
) -> list[Json]:
    """Carry the elements of one name over: usually one, and several for a flag that is repeated."""
    groups = (before, after, live)
    if all(each is not None and len(each) == 1 and isinstance(each[0], dict) for each in groups):
        assert before is not None
        assert after is not None
        assert live is not None
        return [_carry(before[0], after[0], live[0], path, conflicts)]
    if (live or []) not in (before or [], after or []):
        conflicts.append(EditConflict(path, [*(live or [])], [*(after or [])]))
    return [copy_of(each) for each in after or []]


def _placed(names: Sequence[str], new: Sequence[str], live: Sequence[Json]) -> list[str]:
    """Return names as they stand in the list that is there, and added ones behind the name that they follow."""
    there = [name for name in dict.fromkeys(map(_name, live)) if name in names]
    found = [name for name in there if name is not None]
    for number, name in enumerate(new):
        if name not in found and name in names:
            before = next((each for each in reversed(new[:number]) if each in found), None)
            found.insert(found.index(before) + 1 if before is not None else 0, name)
    return found


def _by_name(elements: Sequence[Json]) -> dict[str, list[Json]] | None:
    """Return elements by what names them, in their order; None if something has no name."""
    found: dict[str, list[Json]] = {}
    for each in elements:
        name = _name(each)
        if name is None:
            return None
        found.setdefault(name, []).append(each)
    return found


def _name(element: Json) -> str | None:
    if isinstance(element, str):
        return element.partition("=")[0]
    if isinstance(element, dict):
        return next((str(element[key]) for key in _KEYS if key in element), None)
    return None
