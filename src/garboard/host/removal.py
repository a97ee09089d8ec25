"""Removing files, folders and mounts, and nothing beside them.

Folders are emptied by descriptors: what was opened is emptied, whatever its path means by then. Links are removed and
not followed, and what is mounted is left alone.
"""

import ctypes
import errno
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self, TypeAlias

from garboard.errors import GarboardError, NotReady
from garboard.host.beneath import mount_id, open_beneath, open_child
from garboard.host.root import changed_root, opened_folder, opened_parent
from garboard.model.folder_names import is_covered, is_covered_whole

_MOUNTINFO = Path("/proc/self/mountinfo")
# umount(2)
_UNMOUNT_FLAGS = {"MNT_FORCE": 1, "MNT_DETACH": 2, "MNT_EXPIRE": 4, "UMOUNT_NOFOLLOW": 8}
_MISSING = (FileNotFoundError, NotADirectoryError)
_libc = ctypes.CDLL(None, use_errno=True)

Spares: TypeAlias = Callable[[str], bool]  # whether the entry with this path from the folder stays; a folder has a "/"


def remove_file(path: str | Path) -> None:
    """Remove a file or a link, and flush that to disk; one that is not there is no failure."""
    try:
        with opened_parent(path) as (folder, name):
            os.unlink(name, dir_fd=folder)
            os.fsync(folder)
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        raise _refused("remove", path, error) from error


def remove_empty_folder(path: str | Path) -> None:
    """Remove a folder if it is empty; it is no failure if it is in use or missing."""
    try:
        with opened_parent(path) as (folder, name):
            os.rmdir(name, dir_fd=folder)
            os.fsync(folder)
    except _MISSING:  # it is a file, or a link
        return
    except (OSError, ValueError) as error:
        if getattr(error, "errno", None) not in (errno.ENOTEMPTY, errno.EEXIST, errno.EBUSY):
            raise _refused("remove", path, error) from error


def remove_folder(path: str | Path) -> None:
    """Remove a folder with all below it; one that is not there is no failure."""
    empty_folder(path)
    remove_empty_folder(path)


def empty_folder(
    path: str | Path,
    *,
    keeps: Iterable[str] = (),
    only: Iterable[str] = (),
    is_resolved: bool = False,
    mount: str = "",
) -> None:
    """Remove everything below a folder, except its entries named in `keeps`.

    If the folder holds anything that `only` (see `model.folder_names`) does not cover, nothing is removed. A path that
    `is_resolved` has no links: if there is one by now, it leads somewhere else than was planned, and is refused. So is
    a folder that is not in what is mounted at `mount`: something has been mounted over it, or unmounted.
    """
    kept, names = frozenset(keeps), tuple(only)
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(opened_folder(path, is_resolved=is_resolved))
        except _MISSING:
            return
        except (OSError, ValueError) as error:
            raise _refused("empty", path, error) from error
        if mount and (point := _mount_point(folder)) != mount:
            raise _refused("empty", path, OSError(f"it is in what is mounted at {point} now, and was at {mount}"))
        try:
            if names and (found := sorted(_foreign(folder, names))):
                raise _holds_others(path, found)
            _Emptying(
                folder, lambda path: path.rstrip("/") in kept or (bool(names) and not is_covered(path, names))
            ).run()
            os.fsync(folder)
        except OSError as error:
            raise _refused("empty", path, error) from error


def _foreign(folder: int, names: tuple[str, ...], prefix: str = "") -> Iterator[str]:
    """Yield the paths below a folder that `names` do not cover."""
    for name, is_folder in _entries(folder):
        path = f"{prefix}{name}"
        if not is_covered(f"{path}/" if is_folder else path, names):
            yield path
        elif is_folder and not is_covered_whole(path, names) and (child := open_child(folder, name)) is not None:
            try:
                yield from _foreign(child, names, f"{path}/")
            finally:
                os.close(child)


@dataclass(slots=True)
class _Level:
    """A folder that is being emptied: which one it is, what is left to look at, and whether something stays in it."""

    path: str  # from the folder that everything began with
    identity: tuple[int, int]
    entries: list[tuple[str, bool]]
    is_left: bool = False

    @classmethod
    def of(cls, path: str, folder: int) -> Self:
        return cls(path, _identity(folder), _entries(folder))

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    def path_of(self, name: str) -> str:
        return f"{self.path}/{name}" if self.path else name


class _Emptying:
    """Removes what is below a folder and not spared. One descriptor is open at a time, however deep the folders are."""

    def __init__(self, folder: int, spares: Spares) -> None:
        self._here = os.dup(folder)
        self._levels = [_Level.of("", folder)]
        self._spares = spares

    def run(self) -> None:
        try:
            while self._levels:
                level = self._levels[-1]
                if level.entries:
                    self._take(level, *level.entries.pop())
                else:
                    self._leave()
        finally:
            os.close(self._here)

    def _take(self, level: _Level, name: str, is_folder: bool) -> None:
        path = level.path_of(name)
        if self._spares(f"{path}/" if is_folder else path):
            level.is_left = True
        elif not is_folder:
            level.is_left |= not _unlinked(self._here, name)
        else:
            self._enter(level, name, path)

    def _enter(self, level: _Level, name: str, path: str) -> None:
        try:
            child = open_child(self._here, name)
        except FileNotFoundError:
            return
        if child is None:
            level.is_left = True  # something is mounted there
            return
        self._move_to(child)
        self._levels.append(_Level.of(path, child))

    def _leave(self) -> None:
        emptied = self._levels.pop()
        if not self._levels:
            return
        self._move_to(os.open("..", os.O_RDONLY | os.O_DIRECTORY, dir_fd=self._here))
        level = self._levels[-1]
        if _identity(self._here) != level.identity:
            raise OSError(errno.ESTALE, f"{emptied.path} was moved while it was being emptied")
        if emptied.is_left:
            level.is_left = True
            return
        with suppress(FileNotFoundError):
            os.rmdir(emptied.name, dir_fd=self._here)

    def _move_to(self, folder: int) -> None:
        os.close(self._here)
        self._here = folder


def _identity(folder: int) -> tuple[int, int]:
    found = os.fstat(folder)
    return found.st_dev, found.st_ino


def _entries(folder: int) -> list[tuple[str, bool]]:
    """Return the names in a folder, and which are folders; links are none."""
    with os.scandir(folder) as found:
        return [(each.name, each.is_dir(follow_symlinks=False)) for each in found]


def _unlinked(folder: int, name: str) -> bool:
    """Remove a file or a link; say whether it is gone, which a file that something is mounted at is not."""
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return True
    except OSError as error:
        if error.errno == errno.EBUSY:
            return False
        raise
    return True


def mounts_below(path: str | Path, mountinfo: str | None = None) -> tuple[str, ...]:
    """Return what is mounted below `path`, which has no links, the last mount first."""
    root = f"{changed_root() or ''}{path}".rstrip("/")
    text = _MOUNTINFO.read_text("utf-8", "surrogateescape") if mountinfo is None else mountinfo
    points = (_unescaped(line.split(" ")[4]) for line in text.split("\n") if line)
    return tuple(reversed([point for point in points if point.startswith(f"{root}/")]))


def mount_point(path: str | Path) -> str:
    """Return where that is mounted in which a folder is, as a path below the root; empty if that cannot be told."""
    try:
        with opened_folder(path, is_resolved=True) as folder:
            return _mount_point(folder)
    except (OSError, ValueError):
        return ""


def _mount_point(folder: int) -> str:
    """Return where the mount is of an open folder, whatever its path means by now; empty if it was unmounted since."""
    number = mount_id(folder)
    with opened_folder("/") as top:
        if mount_id(top) == number:  # which the kernel does not list if only a part of it is the root, as in a chroot
            return "/"
    lines = (line.split(" ") for line in _MOUNTINFO.read_text("utf-8", "surrogateescape").split("\n") if line)
    point = next((_unescaped(fields[4]) for fields in lines if fields[0] == number), "")
    root = str(changed_root() or "")
    return (point.removeprefix(root) or "/") if point.startswith(f"{root}/") else "/" * bool(point)


def _unescaped(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)


def unmount_below(path: str | Path, flags: Iterable[str] = (), keeps: Iterable[str] = ()) -> None:
    """Unmount what is mounted below `path`, and leave what is mounted at it.

    Of several mounts at one path the last goes first; as many of them stay as `keeps` names the path.
    """
    number = _UNMOUNT_FLAGS["UMOUNT_NOFOLLOW"]
    for name in flags:
        number |= _UNMOUNT_FLAGS[name]
    points = mounts_below(path)
    left, stay = Counter(points), Counter(f"{changed_root() or ''}{each}" for each in keeps)
    for point in points:
        if left[point] <= stay[point]:
            continue
        left[point] -= 1
        try:
            _unmount(point, number)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOENT):  # it has gone by itself, with a mount that it was in
                raise _refused("unmount", point, error) from error


def _unmount(point: str, flags: int) -> None:
    """Unmount what is at a path without links; one that has come into it since does not lead elsewhere."""
    folder, _, name = point.rpartition("/")
    top = os.open("/", os.O_PATH)
    try:
        parent = open_beneath(top, f"{folder}/", os.O_PATH | os.O_DIRECTORY, allows_links=False)
    finally:
        os.close(top)
    try:
        # The mount itself must not be open while it is unmounted, so its folder is.
        if _libc.umount2(os.fsencode(f"/proc/self/fd/{parent}/{name}"), flags) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), point)
    finally:
        os.close(parent)


def _holds_others(path: str | Path, found: list[str]) -> NotReady:
    return NotReady(
        f"{path} holds what kubeadm does not make, and is not emptied: {', '.join(found)}",
        hint="move these away, and run it again",
        error_class="foreign-files",
    )


def _refused(verb: str, path: str | Path, error: Exception) -> GarboardError:
    return GarboardError(
        f"cannot {verb} {path}: {getattr(error, 'strerror', None) or error}",
        hint="check who uses it, and the permissions there",
        error_class="unwritable",
    )
