"""Objects of the API server as they were before a run, with nobody else's changes lost."""

import json
from collections.abc import Callable, Iterable, Iterator

from garboard.documents import Json
from garboard.engine.action import (
    Action,
    ControlService,
    DeleteObject,
    ObjectAction,
    PatchObject,
    PutObject,
)
from garboard.engine.before import Before, Eyes, ObjectBefore

# What the API server writes into an object, and refuses or ignores when it is sent back.
_SERVER_METADATA = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid")


def restore_objects(
    done: Iterable[tuple[Action, Before]], eyes: Eyes, kept: Callable[[str], bytes]
) -> Iterator[Action]:
    """Yield what takes objects back to how the first step about each found it, the last object first."""
    found: dict[tuple[str, str, str], Action] = {}
    for action, before in done:
        if isinstance(action, ControlService) and action.registers:
            key = ("Node", "", action.registers)
            # A worker knows nobody in the cluster but its kubelet, and that may not delete its own Node.
            node = DeleteObject(api_version="v1", kind="Node", name=action.registers, is_needed=False)
            found.setdefault(key, node)
        if isinstance(action, PutObject | PatchObject | DeleteObject):
            for former in before.objects:
                key = (former.kind, former.namespace, former.name)
                if key not in found:
                    found[key] = _way_back(action, former, eyes, kept)
    yield from reversed(found.values())


def _way_back(action: ObjectAction, former: ObjectBefore, eyes: Eyes, kept: Callable[[str], bytes]) -> Action:
    content: Json = json.loads(kept(former.sha256)) if former.sha256 else None
    if isinstance(action, PutObject) and action.keeps_other_data:
        return _without_keys(action, content, eyes)
    if not isinstance(content, dict):
        return _deletion(former)
    if isinstance(action, PatchObject):
        return _patch(former, inverse_patch(action.content, content))
    return PutObject(
        api_version=former.api_version,
        kind=former.kind,
        name=former.name,
        namespace=former.namespace,
        content=without_server_fields(content),
        is_secret=True,
    )


def _without_keys(action: PutObject, content: Json, eyes: Eyes) -> Action:
    """Return what takes the action's own keys back, or the object if nobody else has put anything there."""
    former = ObjectBefore(action.api_version, action.kind, action.namespace, action.name)
    keys = _data(action.content)
    current = eyes.objects.find(action.kind, action.namespace, action.name) if eyes.objects else None
    if content is None and not set(_data(current)) - set(keys):
        return _deletion(former)
    values: dict[str, Json] = {key: _data(content).get(key) for key in keys}
    return _patch(former, {"data": values})


def _data(content: Json) -> dict[str, Json]:
    found = content.get("data") if isinstance(content, dict) else None
    return found if isinstance(found, dict) else {}


def _deletion(former: ObjectBefore) -> DeleteObject:
    return DeleteObject(api_version=former.api_version, kind=former.kind, name=former.name, namespace=former.namespace)


def _patch(former: ObjectBefore, content: Json) -> PatchObject:
    return PatchObject(
        api_version=former.api_version,
        kind=former.kind,
        name=former.name,
        namespace=former.namespace,
        content=content,
    )


def inverse_patch(patch: Json, found: Json) -> Json:
    """Return the strategic merge patch that gives every field of `patch` the value it has in `found`."""
    if isinstance(patch, dict):
        held = found if isinstance(found, dict) else {}
        return {
            key: inverse_patch(value, held[key]) if key in held else None
            for key, value in patch.items()
            if not key.startswith("$")
        }
    if isinstance(found, list) and all(isinstance(each, dict) for each in found):
        return [{"$patch": "replace"}, *found]
    return found


def without_server_fields(content: dict[str, Json]) -> dict[str, Json]:
    """Return an object as a client would send it."""
    metadata = content.get("metadata")
    kept = (
        {key: value for key, value in metadata.items() if key not in _SERVER_METADATA}
        if isinstance(metadata, dict)
        else {}
    )
    return {**{key: value for key, value in content.items() if key not in ("metadata", "status")}, "metadata": kept}
