"""Folders with what is below them: listed, and given to another owner. Links below them are never followed."""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from garboard.errors import BadDocument, GarboardError
from garboard.host.beneath import open_child
from garboard.host.root import opened, opened_folder, stat_path
from garboard.values import dataclass

_ERRORS = (OSError, ValueError)
_CHILD = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


@dataclass(frozen=True, slots=True)
class FolderEntry:
    """One entry below a folder: its path from there, and its name in the open folder `parent`."""

    path: str
    name: str
    parent: int
    is_folder: bool


def walk(folder: int, prefix: str = "") -> Iterator[FolderEntry]:
    """Yield everything below an open folder, a folder before what is in it; its descriptors are closed on the way."""
    for entry in sorted(os.scandir(folder), key=lambda each: each.name):
        is_folder = entry.is_dir(follow_symlinks=False)
        path = f"{prefix}{entry.name}"
        yield FolderEntry(path, entry.name, folder, is_folder)
        if is_folder:
            yield from _walk_child(folder, entry.name, path)


def _walk_child(folder: int, name: str, path: str) -> Iterator[FolderEntry]:
    try:
        child = os.open(name, _CHILD, dir_fd=folder)
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error
    try:
        yield from walk(child, f"{path}/")
    finally:
        os.close(child)


def folder_entries(path: str | Path) -> tuple[str, ...]:
    """Return the names in a folder, sorted; none where there is no folder that can be looked into."""
    try:
        return names_in(path)
    except _ERRORS:
        return ()


def names_in(path: str | Path) -> tuple[str, ...]:
    """Return the names in a folder, sorted; an OSError where there is no folder that can be looked into."""
    with opened_folder(path) as folder, os.scandir(folder) as found:
        return tuple(sorted(each.name for each in found))


def has_files(path: str | Path) -> bool:
    """Say whether anything but folders is below a folder; what cannot be looked into is taken to hold something."""
    try:
        with opened_folder(path) as folder:
            return any(not each.is_folder for each in walk(folder))
    except FileNotFoundError:
        return False
    except _ERRORS:
        return True


def changed_since(path: str | Path, moment: datetime) -> tuple[str, ...]:
    """Return what is below a folder, as paths from there, and was made or changed since; folders do not count.

    The kernel's own time of the change counts, which a copy does not take along. What is mounted is not looked into.
    """
    try:
        with opened_folder(path) as folder:
            return tuple(_changed(folder, moment.timestamp()))
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except _ERRORS as error:
        raise _unlistable(path, error) from error


def _changed(folder: int, since_s: float, prefix: str = "") -> Iterator[str]:
    for entry in sorted(os.scandir(folder), key=lambda each: each.name):
        with suppress(FileNotFoundError):
            if not entry.is_dir(follow_symlinks=False):
                if entry.stat(follow_symlinks=False).st_ctime > since_s:
                    yield f"{prefix}{entry.name}"
            elif (child := open_child(folder, entry.name)) is not None:
                try:
                    yield from _changed(child, since_s, f"{prefix}{entry.name}/")
                finally:
                    os.close(child)


def paths_below(path: str | Path) -> tuple[str, ...]:
    """Return the path of everything below a folder; none where there is no folder that can be looked into."""
    try:
        with opened_folder(path) as folder:
            return tuple(sorted(str(Path(path) / each.path) for each in walk(folder)))
    except _ERRORS:
        return ()


def list_tree(folder: str | Path) -> list[str]:
    """Return the path of every file below `folder`, from there and with `/`, without reading any.

    The folder must be one and not a link to one; a link below it counts as a file and is not descended into.
    """
    try:
        with opened(folder, os.O_PATH | os.O_NOFOLLOW) as found:
            mode = os.fstat(found).st_mode
        if not stat.S_ISDIR(mode):
            what = "a symbolic link" if stat.S_ISLNK(mode) else "not a directory"
            hint = "name the directory itself"
            raise BadDocument(f"cannot list {folder}: it is {what}", hint=hint, error_class="not-a-directory")
        with opened(folder, _CHILD) as descriptor:
            return sorted(each.path for each in walk(descriptor) if not each.is_folder)
    except FileNotFoundError as error:
        # As for a file: what is not there is no document that could be refused.
        raise GarboardError(
            f"cannot list {folder}: it is not there", hint="check the path", error_class="unreadable"
        ) from error
    except _ERRORS as error:
        raise _unlistable(folder, error) from error


def _unlistable(folder: str | Path, error: OSError | ValueError) -> GarboardError:
    below = error.filename if isinstance(error, OSError) and isinstance(error.filename, str) else ""
    return GarboardError(
        f"cannot list {Path(folder) / below}: {getattr(error, 'strerror', None) or error}",
        hint="check the permissions of the directory",
        error_class="unreadable",
    )


def sync_folder(path: str | Path) -> None:
    """Flush to disk what was renamed, made or removed in a folder."""
    with opened_folder(path) as folder:
        os.fsync(folder)


def change_owner(path: str | Path, *, uid: int, gid: int, mode: int | None) -> None:
    """Change owner and mode of a file; without a mode, the owner of a folder and all below it."""
    try:
        if mode is None:
            _change_tree(path, uid, gid)
            return
        with opened(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY) as file:
            os.fchown(file, uid, gid)
            os.fchmod(file, mode)
    except _ERRORS as error:
        raise GarboardError(
            f"cannot give {path} to {uid}:{gid}: {getattr(error, 'strerror', None) or error}",
            hint="only root may give files away",
            error_class="unwritable",
        ) from error


def _change_tree(path: str | Path, uid: int, gid: int) -> None:
    with opened_folder(path) as folder:
        os.fchown(folder, uid, gid)
        for each in walk(folder):
            os.chown(each.name, uid, gid, dir_fd=each.parent, follow_symlinks=False)


_KINDS = ((stat.S_ISDIR, "folder"), (stat.S_ISSOCK, "socket"), (stat.S_ISREG, "file"))


def path_kind(path: str) -> str:
    """Say what a path leads to: a file, folder or socket, `other`, or `absent` if that is nothing we can see."""
    try:
        mode = stat_path(path).st_mode
    except (OSError, ValueError):
        return "absent"
    return next((name for is_kind, name in _KINDS if is_kind(mode)), "other")
