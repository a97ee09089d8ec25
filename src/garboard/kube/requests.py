"""Requests to the API server and their answers as plain values: nothing here sends or waits.

A client finds the resource of a kind in `KnownResources`, builds an `ApiRequest` with one of the functions below, sends
it, and passes status and body of the answer to `ApiRequest.read`.
"""

import json
from collections.abc import Mapping
from dataclasses import field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from urllib.parse import urlencode

from garboard import __version__
from garboard.documents import Json
from garboard.kube.errors import refusal
from garboard.kube.resources import ObjectRef, Resource, group_path
from garboard.values import dataclass

# The field manager is kubeadm whichever of the two tools writes, so that they do not conflict over an object.
FIELD_MANAGER = "kubeadm"
PAGE_SIZE = 500
_JSON = "application/json"


class PatchFormat(StrEnum):
    """How a patch is to be understood, as its content type says; `APPLY` is server-side apply."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"  # YAML, of which JSON is a part


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRequest:
    """One request; `what` describes it, and completes the sentence "cannot …" in an error."""

    method: str
    path: str
    what: str
    query: Mapping[str, str] = field(default_factory=dict)
    content: Json = field(default=None, repr=False)
    content_type: str = _JSON
    object_path: str = ""  # where to look whether a change was made; empty where that cannot be seen

    @property
    def target(self) -> str:
        """The path with the query, as the first line of the request has it."""
        return f"{self.path}?{urlencode(self.query)}" if self.query else self.path

    @property
    def body(self) -> bytes | None:
        return None if self.content is None else json.dumps(self.content).encode()

    def headers(self, token: str) -> dict[str, str]:
        """Return the headers, with the bearer token of the user if there is one."""
        headers = {"Accept": _JSON, "User-Agent": f"garboard/{__version__}"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        if self.content is not None:
            headers["Content-Type"] = self.content_type
        return headers

    def read(self, status: int, data: bytes, retry_after_s: float | None = None) -> dict[str, Json]:
        """Return the object in an answer; a failure, or an answer that is no object, is raised as its error."""
        try:
            document = json.loads(data)
        except ValueError:
            document = None
        if not 200 <= status < 300 or not isinstance(document, dict):
            raise refusal(f"cannot {self.what}", status, document, retry_after_s)
        return document

    @property
    def is_idempotent(self) -> bool:
        """Whether the request, sent twice, gives the answer and the state that it gives once."""
        if self.method == "GET":
            return True
        depends_on_version = bool(self._version) or self.content_type == PatchFormat.JSON
        return self.method in ("PUT", "PATCH") and not depends_on_version

    @property
    def _version(self) -> Json:
        content = self.content if isinstance(self.content, dict) else {}
        metadata = content.get("metadata")
        return metadata.get("resourceVersion") if isinstance(metadata, dict) else None

    def is_done(self, found: dict[str, Json] | None) -> bool:
        """Say whether an object, None if there is none, is as this request leaves it."""
        if self.method == "DELETE":
            metadata = found.get("metadata") if found else None
            return found is None or (isinstance(metadata, dict) and "deletionTimestamp" in metadata)
        if found is None or self.content_type == PatchFormat.JSON or not isinstance(self.content, dict):
            return False
        metadata = self.content.get("metadata")
        named = metadata if isinstance(metadata, dict) else {}
        wanted: dict[str, Json] = {key: value for key, value in named.items() if key not in _OF_SERVER}
        return _holds(found, {**self.content, "metadata": wanted})


# What the API server counts and notes with every change of an object, whatever a client sends.
_OF_SERVER = ("resourceVersion", "generation", "managedFields")


def _holds(found: Json, given: Json) -> bool:
    """Say whether a value has all that was given; the API server adds defaults, and leaves out what is empty."""
    if isinstance(given, dict):
        members = found if isinstance(found, dict) else {}
        return all(_holds(members.get(key), value) for key, value in given.items())
    if isinstance(given, list) and isinstance(found, list):
        return len(found) == len(given) and all(map(_holds, found, given))
    return found == given or (not found and not given)


def look_at(request: ApiRequest) -> ApiRequest:
    """Read the object that a request changes, to see whether it did."""
    return ApiRequest(method="GET", path=request.object_path, what=f"find out whether this was done: {request.what}")


def discover(api_version: str) -> ApiRequest:
    """Ask which resources an API group and version has; `KnownResources.learn` reads the answer."""
    return ApiRequest(method="GET", path=group_path(api_version), what=f"list the kinds of {api_version}")


def get_object(resource: Resource, ref: ObjectRef, *, is_for_update: bool = False) -> ApiRequest:
    """Read an object; errors of an update name its namespace, too, as those of the update itself do."""
    what = _words("get", ref) if is_for_update else f"get {ref.kind} {ref.name}"
    return ApiRequest(method="GET", path=resource.object(ref.namespace, ref.name), what=what)


def create_object(
    resource: Resource, ref: ObjectRef, content: Json, *, manager: str = FIELD_MANAGER, subresource: str = ""
) -> ApiRequest:
    """Create an object, or post to a subresource of one that is there, such as the `eviction` of a Pod."""
    if subresource:
        path = resource.object(ref.namespace, ref.name, subresource)
        return replace(_write("POST", path, _words("create", ref, subresource), content, manager), object_path="")
    path = resource.collection(ref.namespace)
    # What has no name, such as a TokenReview, is answered and not kept: nothing shows whether it was done.
    made = resource.object(ref.namespace, ref.name) if ref.name else ""
    return replace(_write("POST", path, _words("create", ref), content, manager), object_path=made)


def replace_object(
    resource: Resource, ref: ObjectRef, content: Json, *, manager: str = FIELD_MANAGER, subresource: str = ""
) -> ApiRequest:
    """Replace an existing object; with a resourceVersion, only that version of it."""
    path = resource.object(ref.namespace, ref.name, subresource)
    return _write("PUT", path, _words("update", ref, subresource), content, manager)


def patch_object(
    resource: Resource,
    ref: ObjectRef,
    content: Json,
    patch_format: PatchFormat = PatchFormat.STRATEGIC,
    *,
    manager: str = FIELD_MANAGER,
    subresource: str = "",
    forces: bool = False,
) -> ApiRequest:
    """Patch an object, or apply it by server-side apply, which creates one that is not there.

    With `forces`, apply takes over the fields that another manager holds; without, that is a conflict.
    """
    path = resource.object(ref.namespace, ref.name, subresource)
    request = _write("PATCH", path, _words("patch", ref, subresource), content, manager)
    query = {**request.query, **({"force": "true"} if forces else {})}
    # The outcome of a JSON patch depends on what it found, so that nothing shows whether it was applied.
    seen_at = "" if patch_format is PatchFormat.JSON else path
    return replace(request, query=query, content_type=patch_format.value, object_path=seen_at)


def delete_object(
    resource: Resource, ref: ObjectRef, *, resource_version: str = "", uid: str = "", propagation: str = ""
) -> ApiRequest:
    """Delete an object; if a version or uid is given, an object with any other is a conflict.

    `propagation` is what becomes of the objects that it owns; without, what is usual for its kind.
    """
    given = {"resourceVersion": resource_version, "uid": uid}
    preconditions: dict[str, Json] = {key: value for key, value in given.items() if value}
    options: dict[str, Json] = {"preconditions": preconditions, "propagationPolicy": propagation}
    content: Json = {key: value for key, value in options.items() if value} or None
    path = resource.object(ref.namespace, ref.name)
    return ApiRequest(method="DELETE", path=path, what=_words("delete", ref), content=content, object_path=path)


def list_objects(
    resource: Resource, namespace: str = "", *, labels: str = "", fields: str = "", page_size: int = PAGE_SIZE
) -> ApiRequest:
    """List the first page of a kind's objects, of all namespaces if none is given, that both selectors select."""
    given = {"labelSelector": labels, "fieldSelector": fields, "limit": str(page_size)}
    query = {name: value for name, value in given.items() if value}
    path = resource.collection(namespace)
    return ApiRequest(method="GET", path=path, what=f"list {resource.kind} objects", query=query)


def watch_objects(
    resource: Resource, namespace: str = "", *, labels: str = "", fields: str = "", version: str, timeout_s: int
) -> ApiRequest:
    """Watch a kind's objects from a version on, for so long at most; the answer is one JSON document per line."""
    given = {"labelSelector": labels, "fieldSelector": fields, "resourceVersion": version}
    query = {name: value for name, value in given.items() if value}
    query |= {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": str(timeout_s)}
    path = resource.collection(namespace)
    return ApiRequest(method="GET", path=path, what=f"watch {resource.kind} objects", query=query)


def listed(answer: dict[str, Json]) -> tuple[dict[str, Json], ...]:
    """Return the objects of one page."""
    items = answer.get("items")
    return tuple(each for each in items if isinstance(each, dict)) if isinstance(items, list) else ()


def next_page(request: ApiRequest, answer: dict[str, Json]) -> ApiRequest | None:
    """Return the request for the page after this answer; None if it was the last one."""
    metadata = answer.get("metadata")
    token = metadata.get("continue") if isinstance(metadata, dict) else None
    return replace(request, query={**request.query, "continue": str(token)}) if token else None


def in_one_page(request: ApiRequest) -> ApiRequest:
    """Return a list that is not split, for when the server has forgotten (410) the state that a page belongs to."""
    return replace(request, query={name: value for name, value in request.query.items() if name not in _OF_PAGES})


_OF_PAGES = ("limit", "continue")


def read_date(text: str | None) -> datetime | None:
    """Return the time that a Date header tells, or None where it tells none."""
    try:
        return parsedate_to_datetime(text or "").replace(tzinfo=UTC)
    except (ValueError, TypeError):
        return None


def read_retry_after(text: str | None, now: datetime) -> float | None:
    """Return how many seconds a Retry-After header asks to wait, whether it names these or a moment."""
    if text and text.strip().isdecimal():
        return float(text)
    moment = read_date(text)
    return max((moment - now).total_seconds(), 0.0) if moment else None


def _write(method: str, path: str, what: str, content: Json, manager: str) -> ApiRequest:
    query = {"fieldManager": manager}
    return ApiRequest(method=method, path=path, what=what, query=query, content=content, object_path=path)


def _words(verb: str, ref: ObjectRef, subresource: str = "") -> str:
    return f"{verb} the {subresource} of {ref}" if subresource else f"{verb} {ref}"
