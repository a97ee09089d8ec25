"""Opening paths as if a folder were `/`: by openat2(2), or by descriptors, one folder after another, without it.

Neither gets out of that folder, whatever links and `..` there are and whatever is renamed meanwhile: nothing is looked
up by a text that was checked before.
"""

import ctypes
import errno
import os
import struct
from contextlib import closing
from pathlib import Path

MAX_LINKS = 40  # as many as the kernel follows
_SYS_OPENAT2 = 437  # the same on every architecture that Kubernetes runs on
_NO_XDEV, _NO_MAGICLINKS, _NO_SYMLINKS, _IN_ROOT = 0x01, 0x02, 0x04, 0x10
# The kernel gives up a lookup with `..` while folders are being renamed, and asks to be asked again.
_MAX_TRIES = 1000
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW

_libc = ctypes.CDLL(None, use_errno=True)
_has_openat2: bool | None = None  # None: not tried yet


def open_beneath(root: int, path: str, flags: int, mode: int = 0o666, *, allows_links: bool = True) -> int:
    """Open a path, relative ones too, as if the folder of the descriptor `root` were `/`.

    Without `allows_links` a link anywhere in the path fails with ELOOP.
    """
    if not has_openat2():
        return _walk(root, path, flags, mode, allows_links=allows_links)
    resolve = _IN_ROOT | _NO_MAGICLINKS | (0 if allows_links else _NO_SYMLINKS)
    return _openat2(root, path, flags, mode, resolve)


def open_child(folder: int, name: str) -> int | None:
    """Open a folder of the folder `folder`, neither a link to one nor, which is None, what is mounted there."""
    if has_openat2():
        try:
            return _openat2(folder, name, _FOLDER, 0, _NO_XDEV | _NO_SYMLINKS)
        except OSError as error:
            if error.errno == errno.EXDEV:
                return None
            raise
    child = os.open(name, _FOLDER, dir_fd=folder)
    if mount_id(child) == mount_id(folder):
        return child
    os.close(child)
    return None


def has_openat2() -> bool:
    """Say whether the kernel knows openat2, and a sandbox around us lets it through."""
    global _has_openat2
    if _has_openat2 is None:
        try:
            os.close(_openat2(-100, "/", os.O_PATH | os.O_DIRECTORY, 0, _NO_XDEV))
        except OSError:
            _has_openat2 = False
        else:
            _has_openat2 = True
    return _has_openat2


def _openat2(folder: int, path: str, flags: int, mode: int, resolve: int) -> int:
    encoded = os.fsencode(path)
    if b"\0" in encoded:
        raise ValueError("embedded null byte")  # as os.open has it; C would read the text up to there
    how = struct.pack("=QQQ", flags | os.O_CLOEXEC, mode if flags & os.O_CREAT else 0, resolve)
    for _ in range(_MAX_TRIES):
        descriptor: int = _libc.syscall(
            ctypes.c_long(_SYS_OPENAT2), ctypes.c_int(folder), encoded, how, ctypes.c_size_t(len(how))
        )
        if descriptor >= 0:
            return descriptor
        if ctypes.get_errno() not in (errno.EAGAIN, errno.EINTR):
            break
    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), path)


def _walk(root: int, path: str, flags: int, mode: int, *, allows_links: bool) -> int:
    """Do what openat2 does in a root; a folder that is swapped for a link meanwhile is not entered."""
    if not path:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    left, links = path.split("/")[::-1], 0
    with closing(_Trail(root)) as trail:
        while left:
            part = left.pop()
            if part in ("", "."):
                continue
            if part == "..":
                trail.leave()
            elif (left or not flags & os.O_NOFOLLOW) and (target := trail.link_at(part)) is not None:
                links += 1
                if links > MAX_LINKS or not allows_links:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
                if target.startswith("/"):
                    trail.leave_all()
                left += target.split("/")[::-1]
            elif left:
                trail.enter(part)
            else:
                return os.open(part, flags | os.O_NOFOLLOW, mode, dir_fd=trail.here)
        return os.open(".", flags & ~os.O_NOFOLLOW, mode, dir_fd=trail.here)


class _Trail:
    """The open folders from the root to where a walk is; `..` is the one before, whatever was renamed meanwhile."""

    def __init__(self, root: int) -> None:
        self._folders = [os.dup(root)]

    @property
    def here(self) -> int:
        return self._folders[-1]

    def link_at(self, name: str) -> str | None:
        """Return what a link names; None for anything else, and for what is not there."""
        try:
            return os.readlink(name, dir_fd=self.here)
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.ENOENT):
                return None
            raise

    def enter(self, name: str) -> None:
        self._folders.append(os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=self.here))

    def leave(self) -> None:
        if len(self._folders) > 1:
            os.close(self._folders.pop())

    def leave_all(self) -> None:
        while len(self._folders) > 1:
            self.leave()

    def close(self) -> None:
        while self._folders:
            os.close(self._folders.pop())


def mount_id(descriptor: int) -> str:
    """Return the number of the mount that a descriptor is in: a device would not tell two parts of one disk apart."""
    lines = Path(f"/proc/self/fdinfo/{descriptor}").read_text().splitlines()
    return next(line for line in lines if line.startswith("mnt_id:")).partition(":")[2].strip()
