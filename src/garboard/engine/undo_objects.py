"""Objects of the cluster as they were before a run: deleted, put back, or patched by the inverse of what was done."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from garboard.documents import Json
from garboard.engine.action import Action, ControlService, DeleteObject, ObjectAction, PatchObject, PutObject
from garboard.engine.pre_image import ObjectPreImage, PreImage
from garboard.engine.undo_running import leads_through_this_node, with_former_pods

# What the API server writes into an object, and refuses or ignores when it is sent back.
_SERVER_METADATA = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid")


def restore_objects(
    done: Iterable[tuple[Action, PreImage]], kept: Callable[[str], bytes], keeps_shared: bool = False
) -> Iterator[Action]:
    """Yield what restores each object to its pre-image in the first step about it, the last object first.

    With `keeps_shared` that is only what belongs to single nodes, which is in no namespace.
    """
    found: dict[tuple[str, str, str], Action] = {}
    steps = list(done)
    former = with_former_pods(steps)
    for action, before in steps:
        if isinstance(action, ControlService) and action.registers and action.service not in former:
            key = ("Node", "", action.registers)
            # A worker knows nobody in the cluster but its kubelet, and that may not delete its own Node.
            node = DeleteObject(
                api_version="v1", kind="Node", name=action.registers, is_needed=False,
                may_be_left=leads_through_this_node(steps),
            )  # fmt: skip
            found.setdefault(key, node)
        if isinstance(action, PutObject | PatchObject | DeleteObject):
            for each in before.objects:
                key = (each.kind, each.namespace, each.name)
                was_kept = isinstance(action, PutObject) and _was_kept(action, each, kept)
                if key not in found and not was_kept and not (keeps_shared and each.namespace):
                    found[key] = _way_back(action, each, kept)
    yield from reversed(found.values())


def _was_kept(action: PutObject, former: ObjectPreImage, kept: Callable[[str], bytes]) -> bool:
    """Say whether an object was there that the action was to leave as it was."""
    if not action.keeps_existing or not former.sha256:
        return False
    if not action.resource_version:
        return True
    content: Json = json.loads(kept(former.sha256))
    metadata = content.get("metadata") if isinstance(content, dict) else None
    return not isinstance(metadata, dict) or metadata.get("resourceVersion") != action.resource_version


def _way_back(action: ObjectAction, former: ObjectPreImage, kept: Callable[[str], bytes]) -> Action:
    content: Json = json.loads(kept(former.sha256)) if former.sha256 else None
    if isinstance(action, PutObject) and action.keeps_other_data:
        return _without_keys(action, content)
    if not isinstance(content, dict):
        return replace(_deletion(former), unless=action.serves if isinstance(action, PutObject) else ())
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


def _without_keys(action: PutObject, content: Json) -> Action:
    """Return what removes or restores the action's own keys, and deletes the object if the run made it for them alone.

    Which keys others use by then, and whether any are left, is looked at when the patch is made: nodes may join until
    then.
    """
    values: dict[str, Json] = {key: _data(content).get(key) for key in _data(action.content)}
    former = ObjectPreImage(action.api_version, action.kind, action.namespace, action.name)
    patch = _patch(former, {"data": values})
    return replace(patch, shared_keys=action.shared_keys, deletes_empty=content is None)


def _data(content: Json) -> dict[str, Json]:
    found = content.get("data") if isinstance(content, dict) else None
    return found if isinstance(found, dict) else {}


def _deletion(former: ObjectPreImage) -> DeleteObject:
    return DeleteObject(api_version=former.api_version, kind=former.kind, name=former.name, namespace=former.namespace)


def _patch(former: ObjectPreImage, content: Json) -> PatchObject:
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
