"""A client of the API server: one connection, one request after the other."""

import http.client
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Self
from urllib.parse import urlencode

from garboard import __version__
from garboard.documents import Json
from garboard.engine import DeleteObject, ObjectAction, PatchObject, PutObject
from garboard.kube.access import Access
from garboard.kube.errors import ObjectConflict, ObjectExists, ObjectInvalid, ObjectMissing, refusal, unreachable
from garboard.kube.merging import united_content, unnamed_owners, with_owner_uid
from garboard.kube.paths import Resource, resource

TIMEOUT_S = 10.0
# Fields belong to kubeadm, whoever of the two wrote them: an object that both put is not fought over.
_WRITTEN_AS = "?fieldManager=kubeadm"
_STRATEGIC = "application/strategic-merge-patch+json"
_MAX_CONFLICTS = 5
_MAX_BYTES = 64 * 1024 * 1024


class KubeClient:
    """Talks to one API server as one user; used by one thread at a time, closed by `with`."""

    def __init__(self, access: Access, *, timeout_s: float = TIMEOUT_S) -> None:
        self.server = access.server
        self.told_time: datetime | None = None  # what the server said the time was, when it answered last
        self._prefix = access.prefix
        self._headers = {"Accept": "application/json", "User-Agent": f"garboard/{__version__}"}
        if access.token:
            self._headers["Authorization"] = f"Bearer {access.token}"
        self._connection = http.client.HTTPSConnection(
            access.host, access.port, timeout=timeout_s, context=access.tls()
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def find(self, kind: str, namespace: str, name: str) -> dict[str, Json] | None:
        """Return an object, or None where there is none."""
        try:
            return self.require(kind, namespace, name)
        except ObjectMissing:
            return None

    def labelled(self, kind: str, namespace: str, selector: str) -> tuple[dict[str, Json], ...]:
        """Return the objects of a namespace that a label selector selects."""
        return self._list(kind, namespace, {"labelSelector": selector})

    def selected(self, kind: str, namespace: str, selector: str) -> tuple[dict[str, Json], ...]:
        """Return the objects of a namespace that a field selector selects."""
        return self._list(kind, namespace, {"fieldSelector": selector})

    def require(self, kind: str, namespace: str, name: str) -> dict[str, Json]:
        """Return an object; one that is not there is refused."""
        return self._ask("GET", resource(kind).object(namespace, name), f"get {kind} {name}")

    def _list(self, kind: str, namespace: str, query: Mapping[str, str]) -> tuple[dict[str, Json], ...]:
        path = f"{resource(kind).collection(namespace)}?{urlencode(query)}"
        items = self._ask("GET", path, f"list {kind} objects").get("items")
        return tuple(each for each in items if isinstance(each, dict)) if isinstance(items, list) else ()

    def list_all(self, kind: str) -> tuple[dict[str, Json], ...]:
        """Return the objects of a kind, whatever namespace they are in."""
        items = self._ask("GET", resource(kind).everywhere, f"list {kind} objects").get("items")
        return tuple(each for each in items if isinstance(each, dict)) if isinstance(items, list) else ()

    def get_text(self, path: str) -> tuple[int, str, str]:
        """Return what a path that is no object answers, such as /readyz: its status, its text and its Date."""
        code, data, headers = self._send("GET", self._prefix + path, None, self._headers)
        return code, data.decode("utf-8", "replace"), headers.get("Date", "")

    def create(self, action: PutObject) -> None:
        """Create the object; one that is there already is refused."""
        self._ask("POST", _place(action).collection(action.namespace), _told("create", action), action.content)

    def put(self, action: PutObject) -> None:
        """Create the object, or bring the existing one to what is asked for."""
        action = self._owned(action)
        try:
            self.create(action)
        except ObjectExists:
            self._update(action)
        except ObjectInvalid:
            # A Service's own address is refused as taken before its name is found to exist.
            if action.kind != "Service" or self.find(action.kind, action.namespace, action.name) is None:
                raise
            self._update(action)

    def ask(self, method: str, path: str, what: str, content: Json = None) -> dict[str, Json]:
        """Send a request of the caller's own making and return the object in the answer; it has no field manager."""
        return self._ask(method, path, what, content, written_as="")

    def replace(self, action: PutObject) -> None:
        """Put the object over the one that is there; with a resourceVersion, only if nobody changed it in between."""
        self._replace(action, action.content)

    def patch(self, action: PatchObject) -> None:
        """Apply a strategic merge patch to an object that is there; lists of `united` keep what they hold."""
        if not action.united:
            return self._patch(action, action.content)
        for attempt in range(1, _MAX_CONFLICTS + 1):
            found = self._ask("GET", _path(action), _told("get", action))
            try:
                return self._patch(action, united_content(action, found))
            except ObjectConflict:
                if attempt == _MAX_CONFLICTS:
                    raise
        return None

    def _patch(self, action: PatchObject, content: Json) -> None:
        self._ask("PATCH", _path(action), _told("patch", action), content, _STRATEGIC)

    def delete(self, action: DeleteObject) -> None:
        """Delete an object; one that is not there is no failure."""
        with suppress(ObjectMissing):
            self._ask("DELETE", _path(action), _told("delete", action))

    def delete_version(self, action: DeleteObject, resource_version: str) -> None:
        """Delete an object as we know it; one that was changed since then is a conflict."""
        only: dict[str, Json] = {"preconditions": {"resourceVersion": resource_version}}
        self._ask("DELETE", _path(action), _told("delete", action), only)

    def _owned(self, action: PutObject) -> PutObject:
        """Return the action with the uid of every owner that is named without one."""
        content = action.content
        for reference in unnamed_owners(content):
            kind, name = str(reference["kind"]), str(reference["name"])
            found = self._ask("GET", resource(kind).object(action.namespace, name), f"get {kind} {name}")
            content = with_owner_uid(content, reference, found)
        return replace(action, content=content)

    def _update(self, action: PutObject) -> None:
        if action.keeps_other_data:
            self._update_data(action)
        else:
            self._replace(action, action.content)

    def _update_data(self, action: PutObject) -> None:
        """Set the keys that the object gives and leave all else; who comes in between is not overwritten."""
        for attempt in range(1, _MAX_CONFLICTS + 1):
            found = self._ask("GET", _path(action), _told("get", action))
            try:
                return self._replace(action, _with_data(found, action.content))
            except ObjectConflict:
                if attempt == _MAX_CONFLICTS:
                    raise
        return None

    def _replace(self, action: PutObject, content: Json) -> None:
        self._ask("PUT", _path(action), _told("update", action), content)

    def _ask(
        self,
        method: str,
        path: str,
        what: str,
        content: Json = None,
        content_type: str = "application/json",
        *,
        written_as: str = _WRITTEN_AS,
    ) -> dict[str, Json]:
        """Send a request and return the object in the answer; `what` says in an error what was tried."""
        body = None if content is None else json.dumps(content).encode()
        path += written_as if body else ""
        headers = {**self._headers, **({"Content-Type": content_type} if body else {})}
        code, data, _ = self._send(method, self._prefix + path, body, headers)
        try:
            document = json.loads(data)
        except ValueError:
            document = None
        if not 200 <= code < 300 or not isinstance(document, dict):
            raise refusal(f"cannot {what}", code, document)
        return document

    def _send(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, bytes, Mapping[str, str]]:
        try:
            self._connection.request(method, path, body, headers)
            with self._connection.getresponse() as answer:
                self._note_time(answer.headers.get("Date"))
                return answer.status, answer.read(_MAX_BYTES), dict(answer.headers.items())
        except (http.client.HTTPException, OSError) as error:
            self._connection.close()
            raise unreachable(self.server, error) from error

    def _note_time(self, text: str | None) -> None:
        with suppress(ValueError, TypeError):
            self.told_time = parsedate_to_datetime(text or "").replace(tzinfo=UTC)


def _place(action: ObjectAction) -> Resource:
    return resource(action.kind)


def _path(action: ObjectAction) -> str:
    return _place(action).object(action.namespace, action.name)


def _told(verb: str, action: ObjectAction) -> str:
    place = f"{action.namespace}/{action.name}" if action.namespace else action.name
    return f"{verb} {action.kind} {place}"


def _with_data(found: dict[str, Json], content: Json) -> Json:
    given = content.get("data") if isinstance(content, dict) else None
    held = found.get("data")
    assert isinstance(given, dict)
    return {**found, "data": {**(held if isinstance(held, dict) else {}), **given}}
