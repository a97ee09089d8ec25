"""Patches as the fake API server applies them: merge patches, JSON patches, and a simple server-side apply."""

from typing import Any


def merged(held: Any, patch: Any) -> Any:
    """Apply a merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return patch
    found = dict(held) if isinstance(held, dict) else {}
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = merged(found.get(key), value)
    return found


def applied(held: Any, before: Any, desired: Any) -> Any:
    """Return what an apply leaves: what its manager applied before and does not any more goes, the rest is merged.

    Lists are replaced as a whole, and nobody is in conflict: that is what the tests of controllers need.
    """
    if not isinstance(desired, dict) or not isinstance(held, dict):
        return desired
    was = before if isinstance(before, dict) else {}
    found = {
        key: value for key, value in held.items() if key in desired or key not in was or _has_others(value, was[key])
    }
    for key in [key for key in was if key in found and key not in desired]:
        found[key] = applied(found[key], was[key], {})
    return found | {key: applied(held.get(key), was.get(key), value) for key, value in desired.items()}


def _has_others(held: Any, was: Any) -> bool:
    """Say whether a mapping holds what the manager never applied."""
    if not isinstance(held, dict) or not isinstance(was, dict):
        return False
    return any(key not in was or _has_others(value, was[key]) for key, value in held.items())


def json_patched(held: Any, operations: Any) -> Any:
    """Apply a JSON patch (RFC 6902) without move and copy; raises LookupError or ValueError if it does not apply."""
    found: Any = {"": _copied(held)}
    for each in operations:
        *above, last = [""] + [part.replace("~1", "/").replace("~0", "~") for part in each["path"].split("/")[1:]]
        place = found
        for part in above:
            place = place[int(part)] if isinstance(place, list) else place[part]
        _operate(place, last, each)
    return found[""]


def _operate(place: Any, last: str, operation: Any) -> None:
    key: Any = last
    if isinstance(place, list):
        key = len(place) if last == "-" else int(last)
    op, value = operation["op"], operation.get("value")
    if op == "add":
        place.insert(key, value) if isinstance(place, list) else place.__setitem__(key, value)
    elif op == "replace":
        place[key]
        place[key] = value
    elif op == "remove":
        del place[key]
    elif op == "test":
        if place[key] != value:
            raise ValueError(f"testing value {operation['path']} failed")
    else:
        raise ValueError(f"the fake knows no {op}")


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(each) for key, each in value.items()}
    return [_copied(each) for each in value] if isinstance(value, list) else value
