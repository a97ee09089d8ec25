"""Folders as values: read with all below them, links not followed, and written as a whole or not at all."""

import ctypes
import errno
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from garboard.errors import BadDocument, GarboardError
from garboard.host.folders import walk
from garboard.host.removal import remove_folder
from garboard.host.root import opened_folder, opened_parent

SYMBOLIC_LINK: Final = "a symbolic link"
# What an installer writes has some hundred files of some kilobytes each.
_MAX_FILES, _MAX_BYTES = 20_000, 256 * 1024 * 1024
_RENAME_EXCHANGE: Final = 2
_libc = ctypes.CDLL(None, use_errno=True)


def read_tree(path: str | Path) -> Mapping[str, bytes | str]:
    """Return what is below a folder by its path from there: the content of files, and in words what is none."""
    try:
        with opened_folder(path) as folder:
            return read_open_tree(folder, path)
    except NotADirectoryError as error:
        raise BadDocument(f"{path} is not a directory", error_class="not-a-directory", hint="name a folder") from error
    except (OSError, ValueError) as error:
        raise GarboardError(
            f"cannot read {path}: {getattr(error, 'strerror', None) or error}",
            hint="check the path and the permissions below it",
            error_class="unreadable",
        ) from error


def read_open_tree(folder: int, path: str | Path) -> Mapping[str, bytes | str]:
    """Return what is below an open folder; `path` names it where there is too much."""
    found: dict[str, bytes | str] = {}
    left = _MAX_BYTES
    for entry in walk(folder):
        if not entry.is_folder:
            content = _content(entry.parent, entry.name, left)
            left -= len(content)
            if left < 0 or len(found) == _MAX_FILES:
                raise _too_much(path)
            found[entry.path] = content
    return found


def _too_much(path: str | Path) -> BadDocument:
    return BadDocument(
        f"{path} has more than {_MAX_BYTES // 2**20} MiB or {_MAX_FILES} files",
        hint="name the folder that the manifests are in",
        error_class="too-large",
    )


def _content(folder: int, name: str, limit: int) -> bytes | str:
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY, dir_fd=folder)
    except OSError as error:
        return SYMBOLIC_LINK if error.errno == errno.ELOOP else error.strerror or str(error)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return "no regular file"
        return file.read(limit + 1)


def write_tree(path: str | Path, files: Mapping[str, bytes], *, marker: str) -> None:
    """Make a folder with files, ours alone; it is there with all of them, or as it was before.

    A folder that is there is replaced if it is empty or has the file `marker`, and refused otherwise.
    """
    try:
        with opened_parent(path) as (parent, name):
            state = _state(parent, name, marker)
            if state == "foreign":
                raise GarboardError(
                    f"{path} has files that were not written by this command",
                    hint="name another folder, or remove it",
                    error_class="exists",
                )
            temporary = f".{name}.{os.urandom(4).hex()}"
            with _removed_after(Path(path).with_name(temporary)):
                _fill(parent, temporary, files)
                _put(parent, temporary, name, is_there=state == "ours")
    except (OSError, ValueError) as error:
        raise GarboardError(
            f"cannot write {path}: {getattr(error, 'strerror', None) or error}",
            hint="nothing was changed; check the folder, its permissions and the free space",
            error_class="unwritable",
        ) from error


@contextmanager
def _removed_after(path: Path) -> Iterator[None]:
    """Remove what is at the path in the end: what has been replaced, or what could not be completed."""
    try:
        yield
    finally:
        remove_folder(path)


def _state(parent: int, name: str, marker: str) -> str:
    """Say what is there: nothing (or an empty folder), a folder of ours, or anything else."""
    try:
        found = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return "nothing"
    if not stat.S_ISDIR(found.st_mode):
        return "foreign"
    folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
    try:
        with os.scandir(folder) as found_names:
            names = [each.name for each in found_names]
    finally:
        os.close(folder)
    return "ours" if marker in names else "foreign" if names else "nothing"


def _fill(parent: int, name: str, files: Mapping[str, bytes]) -> None:
    os.mkdir(name, 0o700, dir_fd=parent)
    root = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
    made = {""}
    try:
        for path, data in files.items():
            _make_parents(root, path.rpartition("/")[0], made)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=root)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
    finally:
        os.close(root)


def _make_parents(root: int, folder: str, made: set[str]) -> None:
    if folder not in made:
        _make_parents(root, folder.rpartition("/")[0], made)
        os.mkdir(folder, 0o700, dir_fd=root)
        made.add(folder)


def _put(parent: int, temporary: str, name: str, *, is_there: bool) -> None:
    """Give the new folder its name; one that is there gets the other name, in the same moment."""
    if not is_there:
        os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
        return
    old, new = os.fsencode(name), os.fsencode(temporary)
    if _libc.renameat2(parent, new, parent, old, _RENAME_EXCHANGE) != 0:
        number = ctypes.get_errno()
        if number not in (errno.EINVAL, errno.ENOSYS):
            raise OSError(number, os.strerror(number))
        _exchange(parent, temporary, name)


def _exchange(parent: int, temporary: str, name: str) -> None:
    """Do without an exchange in one moment, which this file system does not have."""
    aside = f"{temporary}.old"
    os.rename(name, aside, src_dir_fd=parent, dst_dir_fd=parent)
    try:
        os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
    except OSError:
        os.rename(aside, name, src_dir_fd=parent, dst_dir_fd=parent)
        raise
    with suppress(OSError):
        os.rename(aside, temporary, src_dir_fd=parent, dst_dir_fd=parent)
