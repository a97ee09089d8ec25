"""What a step finds before it changes anything: its pre-image, from which undo plans the way back."""

import hashlib
import json
import posixpath
import re
from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from typing import Protocol

from garboard.documents import Json
from garboard.engine.action import (
    Action,
    AddMember,
    ChangeOwner,
    ControlService,
    DeleteObject,
    Issue,
    MakeFolder,
    ObjectAction,
    PatchObject,
    PutObject,
    RemoveFile,
    RemoveFolder,
    WriteFile,
)
from garboard.values import dataclass

# What a write that was killed leaves: the name of its file with a dot before and eight random characters behind.
_TEMPORARY = r"\.{}\.[a-z0-9_]{{8}}"


class FolderView(Protocol):
    def entries(self, path: str) -> tuple[str, ...]:
        """Return the names in a folder, sorted; none where there is no folder."""
        ...


class FileView(FolderView, Protocol):
    def read(self, path: str) -> bytes | None: ...

    def has_folder(self, path: str) -> bool: ...

    def owner(self, path: str) -> tuple[int, int, int] | None:
        """Return user, group and mode of a file or folder, or None where there is none."""
        ...

    def paths_below(self, path: str) -> tuple[str, ...]:
        """Return all paths below a folder."""
        ...


class ServiceView(Protocol):
    def is_active(self, service: str) -> bool: ...


class ObjectView(Protocol):
    def find(self, kind: str, namespace: str, name: str) -> dict[str, Json] | None:
        """Return an object, or None where there is none."""
        ...


class MemberView(Protocol):
    def has(self, peer_url: str) -> bool:
        """Say whether etcd has a member with this peer URL."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Eyes:
    """Who looks at the world for a pre-image; without `objects` none are looked at, for they go with the files."""

    files: FileView
    services: ServiceView | None = None
    objects: ObjectView | None = None
    members: MemberView | None = None


@dataclass(frozen=True, slots=True)
class FileBefore:
    """A file as it was: `sha256` leads to its content."""

    path: str
    sha256: str
    uid: int
    gid: int
    mode: int


@dataclass(frozen=True, slots=True)
class OwnerBefore:
    path: str
    uid: int
    gid: int
    mode: int


@dataclass(frozen=True, slots=True)
class FolderBefore:
    """A folder that others will write to, and what was in it; None if there was none."""

    path: str
    names: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class ObjectBefore:
    """An object of the API server as it was: `sha256` leads to its content, and is empty where there was none."""

    api_version: str
    kind: str
    namespace: str
    name: str
    sha256: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """Everything that one step could change, as it was."""

    files: tuple[FileBefore, ...] = ()
    absent_files: tuple[str, ...] = ()
    absent_folders: tuple[str, ...] = ()  # those on the way to what the step makes, the outermost first
    temporaries: tuple[str, ...] = ()  # files that look like those of a killed write, and are not ours
    owners: tuple[OwnerBefore, ...] = ()
    filled: tuple[FolderBefore, ...] = ()
    active_services: tuple[str, ...] = ()
    objects: tuple[ObjectBefore, ...] = ()
    members: tuple[str, ...] = ()  # peer URLs that etcd had already

    def facts(self) -> dict[str, object]:
        """Return the members that say something, by name."""
        return {each.name: getattr(self, each.name) for each in fields(self) if getattr(self, each.name)}


BEFORE_TYPES: tuple[type, ...] = (FileBefore, OwnerBefore, FolderBefore, ObjectBefore, Before)


def observe(action: Action, eyes: Eyes, keep: Callable[[bytes], str]) -> Before:
    """Look at what the action is about to change; `keep` stores a content and returns its digest."""
    match action:
        case WriteFile() | RemoveFile():
            return _observe_files([action.path], eyes.files, keep)
        case Issue():
            return _observe_files([file.path for file in action.files], eyes.files, keep)
        case MakeFolder():
            return Before(absent_folders=absent_folders(action.path, eyes.files))
        case RemoveFolder():
            return Before(owners=_owners([action.path], eyes.files))
        case ChangeOwner():
            below = eyes.files.paths_below(action.path) if action.mode is None else ()
            return Before(owners=_owners([action.path, *below], eyes.files))
        case ControlService():
            return _observe_service(action, eyes, keep)
        case PutObject() | PatchObject() | DeleteObject():
            return _observe_object(action, eyes, keep)
        case AddMember():
            was_there = eyes.members is not None and eyes.members.has(action.peer_url)
            return Before(members=(action.peer_url,) if was_there else ())
        case _:
            return Before()


def _observe_files(paths: Iterable[str], files: FileView, keep: Callable[[bytes], str]) -> Before:
    found: list[FileBefore] = []
    absent: list[str] = []
    folders: dict[str, None] = {}
    temporary: dict[str, None] = {}
    for path in paths:
        content, owner = files.read(path), files.owner(path)
        if content is None or owner is None:
            absent.append(path)
        else:
            found.append(FileBefore(path, keep(content), *owner))
        folders |= dict.fromkeys(absent_folders(posixpath.dirname(path), files))
        temporary |= dict.fromkeys(temporaries(path, files))
    return Before(
        files=tuple(found),
        absent_files=tuple(absent),
        absent_folders=tuple(folders),
        temporaries=tuple(temporary),
    )


def absent_folders(path: str, files: FileView) -> tuple[str, ...]:
    """Return the folder and those of its parents that are not there, the outermost first."""
    found: list[str] = []
    while path not in ("", "/") and files.owner(path) is None:
        found.append(path)
        path = posixpath.dirname(path)
    return tuple(reversed(found))


def temporaries(path: str, files: FolderView) -> tuple[str, ...]:
    """Return the files beside `path` that a killed write of it may have left."""
    folder, name = posixpath.split(path)
    pattern = re.compile(_TEMPORARY.format(re.escape(name)))
    return tuple(posixpath.join(folder, each) for each in files.entries(folder) if pattern.fullmatch(each))


def _owners(paths: Iterable[str], files: FileView) -> tuple[OwnerBefore, ...]:
    found = ((path, files.owner(path)) for path in paths)
    return tuple(OwnerBefore(path, *owner) for path, owner in found if owner is not None)


def _observe_service(action: ControlService, eyes: Eyes, keep: Callable[[bytes], str]) -> Before:
    is_active = eyes.services is not None and eyes.services.is_active(action.service)
    folders = (
        FolderBefore(path, None if eyes.files.owner(path) is None else eyes.files.entries(path))
        for path in action.fills
    )
    files = _observe_files(action.writes, eyes.files, keep)
    return replace(files, active_services=(action.service,) if is_active else (), filled=tuple(folders))


def _observe_object(action: ObjectAction, eyes: Eyes, keep: Callable[[bytes], str]) -> Before:
    if eyes.objects is None:
        return Before()
    found = eyes.objects.find(action.kind, action.namespace, action.name)
    digest = "" if found is None else keep(object_bytes(found))
    before = ObjectBefore(action.api_version, action.kind, action.namespace, action.name, digest)
    return Before(objects=(before,))


def object_bytes(content: Json) -> bytes:
    return json.dumps(content, sort_keys=True).encode()


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
