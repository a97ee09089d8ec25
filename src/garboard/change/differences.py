"""What differs between two configurations, field by field, in the words that `--set` takes."""

from collections.abc import Iterator, Mapping, Sequence

from garboard.change.attribute import CLUSTER
from garboard.change.merging import MERGED_LISTS
from garboard.documents import Json, equal
from garboard.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeChange:
    """One field with its value before and after; `None` is not set. `item` is the name of an item in a list."""

    kind: str
    path: tuple[str, ...]
    item: str = ""
    before: Json = None
    after: Json = None

    @property
    def label(self) -> str:
        """The field as it is written for `--set`: `apiServer.extraArgs[profiling]`, `KubeletConfiguration:maxPods`."""
        steps = "".join(f'["{step}"]' if "." in step else f".{step}" for step in self.path).removeprefix(".")
        return f"{'' if self.kind == CLUSTER else f'{self.kind}:'}{steps}{f'[{self.item}]' if self.item else ''}"


def differences(
    before: Mapping[str, Mapping[str, Json]], after: Mapping[str, Mapping[str, Json]]
) -> tuple[AttributeChange, ...]:
    """Return what differs between documents by kind, in the order of kinds and names."""
    return tuple(change for kind in after for change in _members(kind, before.get(kind, {}), after[kind], ()))


def _members(
    kind: str, before: Mapping[str, Json], after: Mapping[str, Json], path: tuple[str, ...]
) -> Iterator[AttributeChange]:
    for name in sorted({*before, *after}):
        yield from _member(kind, before.get(name), after.get(name), (*path, name))


def _member(kind: str, before: Json, after: Json, path: tuple[str, ...]) -> Iterator[AttributeChange]:
    how = MERGED_LISTS.get(path[-1])
    if how is not None and isinstance(before, list | None) and isinstance(after, list | None):
        old, new = (_items(value or [], how) for value in (before, after))
        for item in sorted({*old, *new}):
            if not equal(old.get(item), new.get(item)):
                yield AttributeChange(kind=kind, path=path, item=item, before=old.get(item), after=new.get(item))
    elif isinstance(before, dict | None) and isinstance(after, dict | None) and (before or after):
        yield from _members(kind, before or {}, after or {}, path)
    elif not equal(_given(before), _given(after)):
        yield AttributeChange(kind=kind, path=path, before=before, after=after)


def _given(value: Json) -> Json:
    """Return a value, or nothing for an empty list or map: Go writes neither."""
    return None if value in ([], {}) else value


def _items(items: Sequence[Json], how: str) -> dict[str, Json]:
    """Return the items of a list by name; of arguments their values, all of them where a name repeats."""
    if how == "set":
        return {str(each): each for each in items}
    found: dict[str, list[Json]] = {}
    for each in items:
        if isinstance(each, dict):
            found.setdefault(str(each.get("name")), []).append(_value(each) if how == "repeated" else each)
    return {name: values[0] if len(values) == 1 else values for name, values in found.items()}


def _value(item: Mapping[str, Json]) -> Json:
    method = item.get("mergeMethod")
    return f"{item.get('value', '')} ({method})" if method else item.get("value", "")
