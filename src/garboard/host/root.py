"""The root that paths are looked up from: `/`, or the folder that `--rootfs` names.

kubeadm changes its root directory for good, which a program that still has to load parts of itself cannot do. Here
every path that a user or a configuration names is opened below that folder instead, links included: what is opened is
what is read, changed or removed, so that nothing can be swapped in between.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from garboard.errors import BadUsage
from garboard.host.beneath import MAX_LINKS, open_beneath
from garboard.values import dataclass

_FOLDER = os.O_RDONLY | os.O_DIRECTORY


@dataclass(frozen=True, slots=True)
class _Root:
    folder: Path
    descriptor: int


_current: _Root | None = None


@contextmanager
def inside(root: str) -> Iterator[None]:
    """Look all paths up below `root` while the block runs; an empty one means the machine's own."""
    global _current  # a process has one root, here as with chroot(2)
    if not root:
        yield
        return
    before = _current
    try:
        descriptor = os.open(root, os.O_PATH | os.O_DIRECTORY)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BadUsage(f"failed to change root path to {root}: {reason}", hint="check --rootfs") from error
    _current = _Root(Path(root).resolve(), descriptor)
    try:
        yield
    finally:
        _current = before
        os.close(descriptor)


def changed_root() -> Path | None:
    """Return the folder that replaces `/`, or None if the root is not changed."""
    return None if _current is None else _current.folder


def open_path(path: str | Path, flags: int, mode: int = 0o666) -> int:
    """Open a user's path and return the descriptor, which children do not inherit."""
    if _current is None:
        return os.open(path, flags, mode)
    return open_beneath(_current.descriptor, str(path), flags, mode)


@contextmanager
def opened(path: str | Path, flags: int, mode: int = 0o666) -> Iterator[int]:
    """Keep a user's path open while the block runs."""
    descriptor = open_path(path, flags, mode)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def opened_folder(path: str | Path, *, is_resolved: bool = False) -> Iterator[int]:
    """Keep a folder open; with `is_resolved`, a link anywhere in its path is refused, for there was none."""
    if not is_resolved:
        descriptor = open_path(path, _FOLDER)
    elif _current is not None:
        descriptor = open_beneath(_current.descriptor, str(path), _FOLDER, allows_links=False)
    else:
        with opened("/", os.O_PATH) as top:
            descriptor = open_beneath(top, str(path), _FOLDER, allows_links=False)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def opened_parent(path: str | Path) -> Iterator[tuple[int, str]]:
    """Keep the folder of a path open, and say which name in it is meant; a link with that name is not followed."""
    folder, name = _split(path)
    if name in ("", ".", ".."):
        raise OSError(errno.EINVAL, "it names no entry of a folder", str(path))
    with opened_folder(folder) as descriptor:
        yield descriptor, name


def through_links(path: str | Path) -> str:
    """Return the path that a link at the end of `path` leads to, and links there; the folders before it are kept."""
    text = str(path)
    for _ in range(MAX_LINKS):
        with opened_parent(text) as (folder, name):
            target = _link_at(name, folder)
        if target is None:
            return text
        text = target if target.startswith("/") else f"{_split(text)[0]}/{target}"
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))


def _split(path: str | Path) -> tuple[str, str]:
    """Split a path into its folder and its last name, by text: pathlib gives two leading slashes a meaning."""
    folder, slash, name = str(path).rstrip("/").rpartition("/")
    return folder or slash or ".", name


def stat_path(path: str | Path) -> os.stat_result:
    """Return what the kernel knows of a file, or of what a link leads to."""
    if _current is None:
        return Path(path).stat()
    with opened(path, os.O_PATH) as descriptor:
        return os.fstat(descriptor)


def exists(path: str | Path, *, follows_last: bool = True) -> bool:
    """Say whether there is something at a path; without `follows_last`, a link that leads nowhere counts, too."""
    try:
        if follows_last:
            stat_path(path)
        else:
            os.close(open_path(path, os.O_PATH | os.O_NOFOLLOW))
    except (OSError, ValueError):
        return False
    return True


def is_folder(path: str | Path) -> bool:
    """Say whether `path` is a folder, or a link to one; what cannot be looked at is none."""
    try:
        return stat.S_ISDIR(stat_path(path).st_mode)
    except (OSError, ValueError):
        return False


def at(path: str | Path) -> Path:
    """Return the machine's own path of a user's path, for what takes no descriptor: programs, and sockets."""
    if _current is None:
        return Path(path)
    return _current.folder / resolved(path).lstrip("/")


def resolved(path: str | Path) -> str:
    """Return where a path leads as a path without links, `.` and `..`; what is not there is taken as a folder.

    It begins at the root in use, for a relative path at the working directory unless the root is changed.
    """
    top = _current.folder if _current else Path("/")
    begin = "" if _current or str(path).startswith("/") else f"{Path.cwd()}/"
    left, reached, links = f"{begin}{path}".split("/")[::-1], list[str](), 0
    while left:
        part = left.pop()
        if part == "..":
            del reached[-1:]
        elif part not in ("", "."):
            target = _link_at(top.joinpath(*reached, part))
            if target is None:
                reached.append(part)
                continue
            links += 1
            if links > MAX_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
            if target.startswith("/"):
                reached.clear()
            left += target.split("/")[::-1]
    return "/" + "/".join(reached)


def _link_at(place: str | Path, folder: int | None = None) -> str | None:
    """Return what a link names; None for anything else, and for what is not there."""
    try:
        return os.readlink(place, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.ENOENT, errno.ENOTDIR):
            return None
        raise
