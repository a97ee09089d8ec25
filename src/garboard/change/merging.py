"""Partial documents and edits of single fields, merged into a configuration by keys that the types do not declare.

Kubernetes' own strategic merge replaces the lists of these types whole: a patch with one argument would erase all
others. So the keys are ours: arguments, volumes and variables are merged by name, and names in certificates as a set.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NoReturn

from garboard.documents import Json
from garboard.errors import PatchFailed

Merge = Literal["named", "repeated", "set", "atomic"]
_DIRECTIVE, _DELETE_VALUES = "$patch", "$deleteFromPrimitiveList/"
# How the lists of a configuration are merged, by the name of the field; every other list is replaced whole.
MERGED_LISTS: Mapping[str, Merge] = {
    "extraArgs": "repeated",  # an item replaces all items of its name, several of one name are several values
    "kubeletExtraArgs": "repeated",
    "extraVolumes": "named",
    "extraEnvs": "named",
    "certSANs": "set",
    "serverCertSANs": "set",
    "peerCertSANs": "set",
}


def merged(current: Json, patch: Json, at: tuple[str, ...] = ()) -> Json:
    """Return a document with a partial one merged in; null removes a field. Neither is changed."""
    if not isinstance(patch, dict):
        return _plain(patch, at)
    before = current if isinstance(current, dict) else {}
    directive = patch.get(_DIRECTIVE)
    if directive == "delete":
        return None
    if directive not in (None, "replace", "merge"):
        _refuse(f"{_DIRECTIVE}: {directive!r} is not known", (*at, _DIRECTIVE), "it is delete, replace or merge")
    found = {} if directive == "replace" else dict(before)
    for name, value in patch.items():
        place = (*at, name)
        if name == _DIRECTIVE:
            continue
        if name.startswith(_DELETE_VALUES):
            _take_out(found, name.removeprefix(_DELETE_VALUES), value, place)
        elif name.startswith("$"):
            _refuse(f"the directive {name!r} is not known here", place, "there are $patch and $deleteFromPrimitiveList")
        else:
            _set_or_drop(found, name, _member(found.get(name), value, name, place))
    return found


def _set_or_drop(holder: dict[str, Json], name: str, value: Json) -> None:
    if value is None:
        holder.pop(name, None)
    else:
        holder[name] = value


def _member(current: Json, value: Json, name: str, at: tuple[str, ...]) -> Json:
    how = MERGED_LISTS.get(name)
    if how is None or not isinstance(value, list):
        return merged(current, value, at)
    before = current if isinstance(current, list) else []
    if how == "set":
        return _united(before, value)
    return _merged_by_name(before, value, at, is_repeated=how == "repeated")


def _united(before: Sequence[Json], values: Sequence[Json]) -> list[Json]:
    found = list(before)
    for each in values:
        if each not in found:
            found.append(each)
    return found


def _merged_by_name(
    before: Sequence[Json], items: Sequence[Json], at: tuple[str, ...], *, is_repeated: bool
) -> list[Json]:
    found = list(before)
    if any(isinstance(each, dict) and each.get(_DIRECTIVE) == "replace" for each in items):
        found = []
    by_name: dict[str, list[dict[str, Json]]] = {}
    for item in items:
        if not isinstance(item, dict) or not isinstance(item.get("name"), str):
            if item == {_DIRECTIVE: "replace"}:
                continue
            _refuse("an item has no name, by which this list is merged", at, "give every item its name")
        by_name.setdefault(str(item["name"]), []).append(item)
    for name, given in by_name.items():
        if any(item.get(_DIRECTIVE) == "delete" for item in given):
            found = [each for each in found if _name_of(each) != name]
        elif is_repeated:
            found = _with_items(found, name, [_plain(item, at) for item in given])
        else:
            old = next((each for each in found if _name_of(each) == name), None)
            found = _with_items(found, name, [merged(old, given[-1], at)])
    return found


def _with_items(found: list[Json], name: str, items: Sequence[Json]) -> list[Json]:
    """Return a list with all items of a name replaced, at the place of the first of them, or at the end."""
    places = [index for index, each in enumerate(found) if _name_of(each) == name]
    at = places[0] if places else len(found)
    rest = [each for index, each in enumerate(found) if index not in places]
    return [*rest[:at], *items, *rest[at:]]


def _name_of(item: Json) -> str:
    return str(item.get("name")) if isinstance(item, dict) else ""


def _take_out(holder: dict[str, Json], name: str, values: Json, at: tuple[str, ...]) -> None:
    if not isinstance(values, list):
        _refuse("it names the values that are taken out, as a list", at, "write it as [a, b]")
    before = holder.get(name)
    if isinstance(before, list):
        holder[name] = [each for each in before if each not in values]


def _plain(value: Json, at: tuple[str, ...]) -> Json:
    """Return a value without nulls and without directives, which are refused where nothing is merged."""
    if isinstance(value, dict):
        for name in value:
            if name.startswith("$") and name != _DIRECTIVE:
                _refuse(f"the directive {name!r} has nothing to act on", (*at, name), "write the value in full")
        return {
            name: _plain(each, (*at, name)) for name, each in value.items() if each is not None and name != _DIRECTIVE
        }
    if isinstance(value, list):
        return [_plain(each, at) for each in value]
    return value


def _refuse(message: str, at: tuple[str, ...], hint: str) -> NoReturn:
    raise PatchFailed(f"{'.'.join(at) or 'the document'}: {message}", error_class="bad-directive", at=at, hint=hint)
