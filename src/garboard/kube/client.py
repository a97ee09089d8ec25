"""A blocking client of the API server: one connection, one request after the other, repeated while that is safe."""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Self, TypeVar

from garboard.documents import Json
from garboard.kube import requests
from garboard.kube.access import Access
from garboard.kube.errors import ConnectionBroken, ObjectMissing, VersionExpired
from garboard.kube.exchange import ApiConnection
from garboard.kube.patience import Patience, repeat
from garboard.kube.requests import FIELD_MANAGER, PAGE_SIZE, ApiRequest, PatchFormat
from garboard.kube.resources import KnownResources, ObjectRef, Resource
from garboard.retry import CLOCK, Clock

TIMEOUT_S = 10.0
# What kubeadm gives its calls by default (timeouts.kubernetesAPICall).
PATIENCE_S = 60.0

T = TypeVar("T")


def _whole(content: dict[str, Json]) -> dict[str, Json]:
    return content


def _silent(_line: str, /) -> None:
    return


class KubeClient:
    """Talks to one API server as one user; used by one thread at a time, closed by `with`.

    `api_version` is needed for kinds that are not in the table of `garboard.kube.resources`, such as custom resources:
    the API server is then asked where they live. For `patience_s` a request is repeated while the server is too busy,
    its etcd has no leader or connections break, as far as that is safe; `report` hears why.
    """

    def __init__(
        self,
        access: Access,
        *,
        timeout_s: float = TIMEOUT_S,
        patience_s: float = PATIENCE_S,
        report: Callable[[str], None] = _silent,
        environment: Mapping[str, str] = os.environ,
        clock: Clock = CLOCK,
    ) -> None:
        self.server = access.server
        self._resources = KnownResources()
        self._patience = Patience(patience_s, report, clock)
        self._connection = ApiConnection(access, timeout_s, environment)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    @property
    def server_time(self) -> datetime | None:
        """What the server said the time was, when it answered last."""
        return self._connection.server_time

    def find(self, kind: str, namespace: str, name: str, *, api_version: str = "") -> dict[str, Json] | None:
        """Return an object, or None where there is none."""
        try:
            return self.require(kind, namespace, name, api_version=api_version)
        except ObjectMissing:
            return None

    def require(self, kind: str, namespace: str, name: str, *, api_version: str = "") -> dict[str, Json]:
        """Return an object; raise if there is none."""
        ref = ObjectRef(kind, namespace, name, api_version)
        return self.send(requests.get_object(self._resource(ref), ref))

    def get_for_update(self, ref: ObjectRef) -> dict[str, Json]:
        """Return an object as it is now, for a change that depends on it."""
        return self.send(requests.get_object(self._resource(ref), ref, is_for_update=True))

    def labelled(self, kind: str, namespace: str, selector: str) -> tuple[dict[str, Json], ...]:
        """Return the objects of a namespace that a label selector selects."""
        return self.list_objects(kind, namespace, labels=selector)

    def selected(self, kind: str, namespace: str, selector: str) -> tuple[dict[str, Json], ...]:
        """Return the objects of a namespace that a field selector selects."""
        return self.list_objects(kind, namespace, fields=selector)

    def list_all(self, kind: str) -> tuple[dict[str, Json], ...]:
        """Return the objects of a kind, whatever namespace they are in."""
        return self.list_objects(kind)

    def list_objects(
        self,
        kind: str,
        namespace: str = "",
        *,
        api_version: str = "",
        labels: str = "",
        fields: str = "",
        page_size: int = PAGE_SIZE,
    ) -> tuple[dict[str, Json], ...]:
        """Return the objects of a kind, of all namespaces if none is given, that both selectors select."""
        resource = self.resource(kind, api_version)
        first = requests.list_objects(resource, namespace, labels=labels, fields=fields, page_size=page_size)
        return self._listed(first, _whole)

    def list_parts(
        self,
        kind: str,
        keep: Callable[[dict[str, Json]], T],
        namespace: str = "",
        *,
        fields: str = "",
        page_size: int = PAGE_SIZE,
    ) -> tuple[T, ...]:
        """Return what `keep` takes of each object of a kind: a large list is never in memory as a whole."""
        first = requests.list_objects(self.resource(kind), namespace, fields=fields, page_size=page_size)
        return self._listed(first, keep)

    def _listed(self, first: ApiRequest, keep: Callable[[dict[str, Json]], T]) -> tuple[T, ...]:
        try:
            return self._pages(first, keep)
        except VersionExpired:
            return tuple(map(keep, requests.listed(self.send(requests.in_one_page(first)))))

    def _pages(self, first: ApiRequest, keep: Callable[[dict[str, Json]], T]) -> tuple[T, ...]:
        found: list[T] = []
        page: ApiRequest | None = first
        while page is not None:
            answer = self.send(page)
            found += map(keep, requests.listed(answer))
            page = requests.next_page(page, answer)
        return tuple(found)

    def create(
        self, ref: ObjectRef, content: Json, *, manager: str = FIELD_MANAGER, subresource: str = ""
    ) -> dict[str, Json]:
        """Create an object, or post to a subresource of it; raise if the object exists already."""
        resource = self._resource(ref)
        return self.send(requests.create_object(resource, ref, content, manager=manager, subresource=subresource))

    def replace(
        self, ref: ObjectRef, content: Json, *, manager: str = FIELD_MANAGER, subresource: str = ""
    ) -> dict[str, Json]:
        """Replace an existing object; with a resourceVersion, only if it was not changed in between."""
        resource = self._resource(ref)
        return self.send(requests.replace_object(resource, ref, content, manager=manager, subresource=subresource))

    def is_replaced(self, ref: ObjectRef, content: Json) -> bool:
        """Say whether an object is as replacing it with the content leaves it, whoever did that."""
        found = self.find(ref.kind, ref.namespace, ref.name, api_version=ref.api_version)
        return requests.replace_object(self._resource(ref), ref, content).is_done(found)

    def patch(
        self,
        ref: ObjectRef,
        content: Json,
        patch_format: PatchFormat = PatchFormat.STRATEGIC,
        *,
        manager: str = FIELD_MANAGER,
        subresource: str = "",
        forces: bool = False,
    ) -> dict[str, Json]:
        """Patch an existing object, or apply one by server-side apply."""
        resource = self._resource(ref)
        return self.send(
            requests.patch_object(
                resource, ref, content, patch_format, manager=manager, subresource=subresource, forces=forces
            )
        )

    def delete(self, ref: ObjectRef, *, resource_version: str = "") -> None:
        """Delete an object; it is no failure if there is none, and a conflict if it has another version."""
        with suppress(ObjectMissing):
            self.send(requests.delete_object(self._resource(ref), ref, resource_version=resource_version))

    def get_text(self, path: str) -> tuple[int, str, str]:
        """Return what a path that is no object answers, such as /readyz: its status, its text and its Date.

        An answer is never asked for again, whatever its status, nor is a server that is not there.
        """
        request = ApiRequest(method="GET", path=path, what=f"get {path}")
        try:
            answer = self._connection.exchange(request)
        except ConnectionBroken as error:
            if not error.was_idle:
                raise
            answer = self._connection.exchange(request)
        return answer.status, answer.data.decode("utf-8", "replace"), answer.date

    def resource(self, kind: str, api_version: str = "") -> Resource:
        """Return the resource of a kind; the API server is asked about kinds that are not in the table."""
        if api_version and self._resources.find(kind, api_version) is None:
            self._resources.learn(api_version, self.send(requests.discover(api_version)))
        return self._resources.require(kind, api_version)

    def send(self, request: ApiRequest) -> dict[str, Json]:
        """Send a request and return the object in the answer."""
        return repeat(request, self._connection, self._patience)

    def _resource(self, ref: ObjectRef) -> Resource:
        return self.resource(ref.kind, ref.api_version)
