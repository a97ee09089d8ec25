"""Objects completed with what the cluster holds: lists that keep their elements, owners that are known by their uid."""

from garboard.documents import Json
from garboard.engine import PatchObject


def united_content(action: PatchObject, found: dict[str, Json]) -> Json:
    """Return the patch with the elements of its united lists that are there; it applies only to this very version."""
    version = _at(found, ("metadata", "resourceVersion"))
    content = _with(action.content, ("metadata", "resourceVersion"), version)
    for path in action.united:
        given, held = _items(_at(content, path)), _items(_at(found, path))
        content = _with(content, path, [*given, *(each for each in held if each not in given)])
    return content


def unnamed_owners(content: Json) -> list[dict[str, Json]]:
    """Return the owner references of an object that have no uid."""
    references = _items(_at(content, ("metadata", "ownerReferences")))
    return [each for each in references if isinstance(each, dict) and not each.get("uid")]


def with_owner_uid(content: Json, reference: dict[str, Json], owner: dict[str, Json]) -> Json:
    """Return the object with the uid of one owner filled in."""
    path = ("metadata", "ownerReferences")
    filled = {**reference, "uid": _at(owner, ("metadata", "uid"))}
    return _with(content, path, [filled if each == reference else each for each in _items(_at(content, path))])


def _items(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _at(value: Json, path: tuple[str, ...]) -> Json:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _with(value: Json, path: tuple[str, ...], new: Json) -> Json:
    if not path:
        return new
    held = value if isinstance(value, dict) else {}
    return {**held, path[0]: _with(held.get(path[0]), path[1:], new)}
