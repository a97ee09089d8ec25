"""What controllers ask of an API server, as a Protocol: the client satisfies it, and the fake of the tests."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from enum import StrEnum
from typing import Protocol, TypeAlias

from garboard.documents import Json
from garboard.kube.requests import PatchFormat
from garboard.kube.resources import ObjectRef
from garboard.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectSelection:
    """The objects of a kind, of all namespaces if none is given, that both selectors select."""

    kind: str
    api_version: str = ""
    namespace: str = ""
    labels: str = ""
    fields: str = ""

    def __str__(self) -> str:
        narrowed = ", ".join(each for each in (self.namespace, self.labels, self.fields) if each)
        return f"{self.kind} objects ({narrowed})" if narrowed else f"{self.kind} objects"


@dataclass(frozen=True, slots=True)
class ObjectList:
    """Objects, and the version of the whole list, from which a watch goes on."""

    version: str
    items: tuple[dict[str, Json], ...]


class ChangeType(StrEnum):
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


@dataclass(frozen=True, slots=True)
class Changed:
    """An object as it is after a change, or as it was last when it was deleted."""

    type: ChangeType
    content: dict[str, Json]


@dataclass(frozen=True, slots=True)
class Bookmark:
    """Everything up to this version has been told: a watch may go on from there."""

    version: str


WatchEvent: TypeAlias = Changed | Bookmark


def version_of(content: dict[str, Json]) -> str:
    """Return the resourceVersion of an object, or of a list."""
    metadata = content.get("metadata")
    return str(metadata.get("resourceVersion") or "") if isinstance(metadata, dict) else ""


class KubeApi(Protocol):
    """One API server as one user. Failures are the errors of `garboard.kube`, whoever answers."""

    async def find(self, ref: ObjectRef) -> dict[str, Json] | None:
        """Return an object, or None where there is none."""

    async def require(self, ref: ObjectRef) -> dict[str, Json]:
        """Return an object; raise `ObjectMissing` if there is none."""

    async def create(self, ref: ObjectRef, content: Json, *, subresource: str = "") -> dict[str, Json]:
        """Create an object; raise `ObjectExists` if it exists already."""

    async def replace(self, ref: ObjectRef, content: Json, *, subresource: str = "") -> dict[str, Json]:
        """Replace an object; with a resourceVersion, `ObjectConflict` is raised if it was changed in between."""

    async def patch(
        self,
        ref: ObjectRef,
        content: Json,
        patch_format: PatchFormat = PatchFormat.MERGE,
        *,
        subresource: str = "",
        forces: bool = False,
    ) -> dict[str, Json]:
        """Patch an object, or apply it by server-side apply."""

    async def delete(self, ref: ObjectRef, *, resource_version: str = "", uid: str = "", propagation: str = "") -> None:
        """Delete an object; it is no failure if there is none, and a conflict if it is not the one that is meant.

        `propagation` is needed where the API server leaves alone what the object owns, as with a Job and its Pods.
        """

    async def list_objects(self, selection: ObjectSelection) -> ObjectList:
        """Return all objects of a selection as they are at one version."""

    def watch(self, selection: ObjectSelection, version: str) -> AbstractAsyncContextManager[AsyncIterator[WatchEvent]]:
        """Tell what changes after a version, until the server ends the watch, which it does now and then.

        `VersionExpired` is raised if the server does not remember that version any more.
        """
