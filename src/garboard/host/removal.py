"""Taking files, folders and mounts away, and nothing that was not meant."""

import ctypes
import errno
import os
import re
from collections.abc import Iterable
from pathlib import Path

from garboard.errors import GarboardError
from garboard.host.files import sync_folder
from garboard.host.root import at

_MOUNTINFO = Path("/proc/self/mountinfo")
# umount(2)
_UNMOUNT_FLAGS = {"MNT_FORCE": 1, "MNT_DETACH": 2, "MNT_EXPIRE": 4, "UMOUNT_NOFOLLOW": 8}
_libc = ctypes.CDLL(None, use_errno=True)


def remove_file(path: str | Path) -> None:
    """Remove a file or a link, and make that last; one that is not there is no failure."""
    target = at(path, follows_last=False)
    try:
        target.unlink(missing_ok=True)
        sync_folder(target.parent)
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        raise _refused("remove", target, error) from error


def remove_empty_folder(path: str | Path) -> None:
    """Remove a folder if nothing is in it; what is used or has gone stays as it is."""
    target = at(path, follows_last=False)
    try:
        if target.is_dir() and not target.is_symlink() and not any(target.iterdir()):
            target.rmdir()
            sync_folder(target.parent)
    except (OSError, ValueError) as error:
        raise _refused("remove", target, error) from error


def empty_folder(path: str | Path, *, keeps: Iterable[str] = ()) -> None:
    """Remove all below a folder but what is in it by the names of `keeps`.

    Links are removed and not followed, what is mounted there is left as it is.
    """
    root = at(path)
    try:
        if root.is_dir():
            top = root.resolve()
            _empty(top, frozenset((*mounts_below(path), *(str(top / name) for name in keeps))))
            sync_folder(root)
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        raise _refused("empty", root, error) from error


def _empty(folder: Path, kept: frozenset[str]) -> bool:
    """Remove what is in `folder` and not to be kept, such as what is mounted there; say whether nothing is left."""
    is_empty = True
    for entry in os.scandir(folder):
        # The device of a folder would not tell: it is the same for a part of one disk that is mounted elsewhere on it.
        if entry.path in kept:
            is_empty = False
        elif not entry.is_dir(follow_symlinks=False):
            Path(entry.path).unlink(missing_ok=True)
        elif _empty(Path(entry.path), kept):
            Path(entry.path).rmdir()
        else:
            is_empty = False
    return is_empty


def mounts_below(path: str | Path, mountinfo: str | None = None) -> tuple[str, ...]:
    """Return what is mounted below `path`, wherever links lead to it, the last mount first."""
    root = os.path.realpath(at(path))
    text = _MOUNTINFO.read_text() if mountinfo is None else mountinfo
    points = (_unescaped(line.split()[4]) for line in text.splitlines())
    return tuple(reversed([point for point in points if point.startswith(f"{root.rstrip('/')}/")]))


def _unescaped(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)


def unmount_below(path: str | Path, flags: Iterable[str] = ()) -> None:
    """Unmount what is mounted below `path`, and leave what is mounted at it."""
    number = sum({_UNMOUNT_FLAGS[name] for name in flags})
    for point in mounts_below(path):
        if _libc.umount2(os.fsencode(point), number) == 0:
            continue
        failure = ctypes.get_errno()
        if failure not in (errno.EINVAL, errno.ENOENT):  # it has gone by itself, with a mount that it was in
            raise _refused("unmount", Path(point), OSError(failure, os.strerror(failure)))


def _refused(verb: str, path: Path, error: Exception) -> GarboardError:
    return GarboardError(
        f"cannot {verb} {path}: {getattr(error, 'strerror', None) or error}",
        hint="check who uses it, and the permissions there",
        error_class="unwritable",
    )
