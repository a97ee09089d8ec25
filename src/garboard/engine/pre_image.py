"""Pre-images: what a step found before it changed it. Undo is planned from them.

Which of the functions below a kind of action needs is in its row in `traits`.
"""

import hashlib
import json
import posixpath
import re
from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from typing import Protocol, TypeAlias

from garboard.documents import Json
from garboard.engine.action import ControlService, ObjectAction
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

    def resolve(self, path: str) -> str:
        """Return where a path leads, as a path without links, `.` and `..`."""
        ...

    def owner(self, path: str) -> tuple[int, int, int] | None:
        """Return user, group and mode of a file or folder, or None where there is none."""
        ...

    def paths_below(self, path: str) -> tuple[str, ...]:
        """Return all paths below a folder."""
        ...

    def mounts_below(self, path: str) -> tuple[str, ...]:
        """Return where something is mounted below a path without links, once for each mount."""
        ...


class ServiceView(Protocol):
    def is_active(self, service: str) -> bool: ...


class TimerView(Protocol):
    def is_timer_enabled(self, timer: str) -> bool: ...


class UnitFileView(Protocol):
    def is_service_enabled(self, service: str) -> bool:
        """Say whether a service runs whenever the machine starts."""
        ...


class LinkView(Protocol):
    def has_address(self, address: str) -> bool: ...


class RuntimeView(Protocol):
    def sandboxes(self) -> tuple[str, ...] | None:
        """Return the ids of all pod sandboxes; None if nobody could be asked."""
        ...


class ObjectView(Protocol):
    def find(self, kind: str, namespace: str, name: str, *, api_version: str = "") -> dict[str, Json] | None:
        """Return an object, or None where there is none."""
        ...


class MemberView(Protocol):
    def has(self, peer_url: str) -> bool:
        """Say whether etcd has a member with this peer URL."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Observers:
    """The read-only views that pre-images are taken from.

    `objects` is None if the run makes the cluster: its objects are removed together with the files of etcd.
    """

    files: FileView
    services: ServiceView | None = None
    objects: ObjectView | None = None
    members: MemberView | None = None
    runtime: RuntimeView | None = None
    timers: TimerView | None = None
    unit_files: UnitFileView | None = None
    links: LinkView | None = None


@dataclass(frozen=True, slots=True)
class FilePreImage:
    """A file as it was; its content is kept under `sha256`."""

    path: str
    sha256: str
    uid: int
    gid: int
    mode: int


@dataclass(frozen=True, slots=True)
class OwnerPreImage:
    path: str
    uid: int
    gid: int
    mode: int


@dataclass(frozen=True, slots=True)
class FolderPreImage:
    """A folder that a service will write to, and the names in it; None if there was no folder."""

    path: str
    names: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class ObjectPreImage:
    """An object of the API server as it was; its content is kept under `sha256`, which is empty if there was none."""

    api_version: str
    kind: str
    namespace: str
    name: str
    sha256: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreImage:
    """Everything that one step could change, as it was."""

    files: tuple[FilePreImage, ...] = ()
    absent_files: tuple[str, ...] = ()
    absent_folders: tuple[str, ...] = ()  # those on the way to what the step makes, the outermost first
    temporaries: tuple[str, ...] = ()  # files that look like those of a killed write, and are not ours
    owners: tuple[OwnerPreImage, ...] = ()
    filled: tuple[FolderPreImage, ...] = ()
    active_services: tuple[str, ...] = ()
    objects: tuple[ObjectPreImage, ...] = ()
    members: tuple[str, ...] = ()  # peer URLs that etcd had already
    sandboxes: tuple[str, ...] = ()  # pods that a service found when it was started
    is_without_pods: bool = False  # it found none, as the container runtime said itself
    enabled_timers: tuple[str, ...] = ()
    enabled_services: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()  # that the node had already
    new_files: tuple[str, ...] = ()  # that were not there, and may become too large to be read
    mounts: tuple[str, ...] = ()  # below the folders that a service will write to

    def facts(self) -> dict[str, object]:
        """Return the members that are not empty, by name."""
        return {each.name: getattr(self, each.name) for each in fields(self) if getattr(self, each.name)}


Keep: TypeAlias = Callable[[bytes], str]  # stores a content and returns its digest


def nothing(_action: object, _observers: Observers, _keep: Keep) -> PreImage:
    """Return the pre-image of an action that changes nothing undo could restore."""
    return PreImage()


def files(paths: Iterable[str], observers: Observers, keep: Keep) -> PreImage:
    """Return files as they are, and which of their parent folders are missing."""
    view = observers.files
    found: list[FilePreImage] = []
    absent: list[str] = []
    folders: dict[str, None] = {}
    temporary: dict[str, None] = {}
    for path in paths:
        content, owner = view.read(path), view.owner(path)
        if content is None or owner is None:
            absent.append(path)
        else:
            found.append(FilePreImage(path, keep(content), *owner))
        folders |= dict.fromkeys(absent_folders(posixpath.dirname(path), view))
        temporary |= dict.fromkeys(temporaries(path, view))
    return PreImage(
        files=tuple(found),
        absent_files=tuple(absent),
        absent_folders=tuple(folders),
        temporaries=tuple(temporary),
    )


def new_file(path: str, observers: Observers) -> PreImage:
    """Return that a file, and its name until it is complete, are not taken; one that is there is left alone."""
    view = observers.files
    absent = tuple(each for each in (path, partial_path(path)) if view.owner(each) is None)
    return PreImage(new_files=absent, absent_folders=absent_folders(posixpath.dirname(path), view))


def partial_path(path: str) -> str:
    """Return where a file that comes piece by piece is until it is complete."""
    folder, name = posixpath.split(path)
    return posixpath.join(folder, f".{name}.partial")


def first_found(images: Iterable[PreImage]) -> dict[str, FilePreImage | None]:
    """Return each file as the first of the pre-images has it; None for one that was not there."""
    found: dict[str, FilePreImage | None] = {}
    for each in images:
        for path in each.absent_files:
            found.setdefault(path, None)
        for file in each.files:
            found.setdefault(file.path, file)
    return found


def absent_folder(path: str, observers: Observers) -> PreImage:
    return PreImage(absent_folders=absent_folders(path, observers.files))


def absent_folders(path: str, view: FileView) -> tuple[str, ...]:
    """Return the folder and those of its parents that are not there, the outermost first."""
    found: list[str] = []
    while path not in ("", "/") and view.owner(path) is None:
        found.append(path)
        path = posixpath.dirname(path)
    return tuple(reversed(found))


def temporaries(path: str, view: FolderView) -> tuple[str, ...]:
    """Return the files beside `path` that a killed write of it may have left."""
    folder, name = posixpath.split(path)
    pattern = re.compile(_TEMPORARY.format(re.escape(name)))
    return tuple(posixpath.join(folder, each) for each in view.entries(folder) if pattern.fullmatch(each))


def owners(paths: Iterable[str], observers: Observers) -> PreImage:
    """Return who files and folders belong to."""
    found = ((path, observers.files.owner(path)) for path in paths)
    return PreImage(owners=tuple(OwnerPreImage(path, *owner) for path, owner in found if owner is not None))


def service(action: ControlService, observers: Observers, keep: Keep) -> PreImage:
    """Return whether a service runs, and the state of the files, folders and pods that it will change."""
    is_active = observers.services is not None and observers.services.is_active(action.service)
    folders = (
        FolderPreImage(path, None if observers.files.owner(path) is None else observers.files.entries(path))
        for path in action.fills
    )
    present = (path for path in action.fills if observers.files.has_folder(path))
    mounts = (each for path in present for each in observers.files.mounts_below(observers.files.resolve(path)))
    pods = observers.runtime.sandboxes() if observers.runtime is not None and action.fills else None
    return replace(
        files(action.writes, observers, keep),
        active_services=(action.service,) if is_active else (),
        filled=tuple(folders),
        sandboxes=pods or (),
        is_without_pods=pods == (),
        mounts=tuple(mounts),
    )


def timer(name: str, observers: Observers) -> PreImage:
    """Return whether a timer is enabled."""
    is_enabled = observers.timers is not None and observers.timers.is_timer_enabled(name)
    return PreImage(enabled_timers=(name,) if is_enabled else ())


def unit_file(service: str, observers: Observers) -> PreImage:
    """Return whether a service is enabled."""
    is_enabled = observers.unit_files is not None and observers.unit_files.is_service_enabled(service)
    return PreImage(enabled_services=(service,) if is_enabled else ())


def address(text: str, observers: Observers) -> PreImage:
    """Return whether the node has an address."""
    was_there = observers.links is not None and observers.links.has_address(text)
    return PreImage(addresses=(text,) if was_there else ())


def api_object(action: ObjectAction, observers: Observers, keep: Keep) -> PreImage:
    """Return an object of the API server as it is."""
    if observers.objects is None:
        return PreImage()
    found = observers.objects.find(action.kind, action.namespace, action.name, api_version=action.api_version)
    digest = "" if found is None else keep(json.dumps(found, sort_keys=True).encode())
    return PreImage(objects=(ObjectPreImage(action.api_version, action.kind, action.namespace, action.name, digest),))


def member(peer_url: str, observers: Observers) -> PreImage:
    """Return whether etcd has a member with this peer URL."""
    was_there = observers.members is not None and observers.members.has(peer_url)
    return PreImage(members=(peer_url,) if was_there else ())


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
