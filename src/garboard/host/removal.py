"""Taking files, folders and mounts away, and nothing that was not meant."""

import ctypes
import os
import re
from pathlib import Path

from garboard.errors import GarboardError

_MOUNTINFO = Path("/proc/self/mountinfo")
_libc = ctypes.CDLL(None, use_errno=True)


def remove_file(path: str | Path) -> None:
    """Remove a file or a link, and make that last; one that is not there is no failure."""
    target = Path(path)
    try:
        target.unlink(missing_ok=True)
        _sync(target.parent)
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        raise _refused("remove", target, error) from error


def remove_empty_folder(path: str | Path) -> None:
    """Remove a folder if nothing is in it; what is used or has gone stays as it is."""
    target = Path(path)
    try:
        if target.is_dir() and not target.is_symlink() and not any(target.iterdir()):
            target.rmdir()
            _sync(target.parent)
    except (OSError, ValueError) as error:
        raise _refused("remove", target, error) from error


def empty_folder(path: str | Path) -> None:
    """Remove all below a folder; links are removed and not followed, another file system is left as it is."""
    root = Path(path)
    try:
        if root.is_dir():
            _empty(root, root.stat().st_dev)
            _sync(root)
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        raise _refused("empty", root, error) from error


def _empty(folder: Path, device: int) -> bool:
    """Remove what is in `folder` and on its device; say whether nothing is left."""
    is_empty = True
    for entry in os.scandir(folder):
        if not entry.is_dir(follow_symlinks=False):
            Path(entry.path).unlink(missing_ok=True)
        elif entry.stat(follow_symlinks=False).st_dev != device or not _empty(Path(entry.path), device):
            is_empty = False
        else:
            Path(entry.path).rmdir()
    return is_empty


def mounts_below(path: str | Path, mountinfo: str | None = None) -> tuple[str, ...]:
    """Return what is mounted at `path` and below it, the last mount first."""
    root = os.fspath(Path(path))
    text = _MOUNTINFO.read_text() if mountinfo is None else mountinfo
    points = (_unescaped(line.split()[4]) for line in text.splitlines())
    found = [point for point in points if point == root or point.startswith(f"{root.rstrip('/')}/")]
    return tuple(reversed(found))


def _unescaped(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)


def unmount_below(path: str | Path) -> None:
    """Unmount what is mounted at `path` and below it."""
    for point in mounts_below(path):
        if _libc.umount2(os.fsencode(point), 0) != 0:
            number = ctypes.get_errno()
            raise _refused("unmount", Path(point), OSError(number, os.strerror(number)))


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _refused(verb: str, path: Path, error: Exception) -> GarboardError:
    return GarboardError(
        f"cannot {verb} {path}: {getattr(error, 'strerror', None) or error}",
        hint="check who uses it, and the permissions there",
        error_class="unwritable",
    )
