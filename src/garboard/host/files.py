"""Reading and writing files: reads are bounded, and a write replaces the whole file or changes nothing."""

import errno
import hashlib
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from garboard.errors import BadDocument, GarboardError, StalePlan
from garboard.host.removal import remove_file
from garboard.host.root import (
    changed_root,
    is_folder,
    open_path,
    opened,
    opened_folder,
    opened_parent,
    stat_path,
    through_links,
)
from garboard.model.go import clean_path

# Nothing a person writes for a cluster comes near this; what does is a mistake (a core dump, an image, a device).
MAX_DOCUMENT_BYTES = 32 * 1024 * 1024

_TAIL_BYTES = 64 * 1024
_CHUNK_BYTES = 64 * 1024

# What link(2) says where a file system has no second names for a file.
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
# A path can hold what no file system takes, such as a NUL byte; Python then has no OSError but a ValueError.
_ERRORS = (OSError, ValueError)
_MISSING = (FileNotFoundError, NotADirectoryError)
# A pipe that our caller has opened for us: `<(...)` of a shell, and the name of the standard input.
_OWN_PIPE = re.compile(r"/dev/stdin|/dev/fd/\d+|/proc/self/fd/\d+")


def read_file(path: str | Path, *, limit: int = MAX_DOCUMENT_BYTES) -> bytes:
    """Return the bytes of `path` (`-` is stdin); anything but a readable file of at most `limit` bytes is refused."""
    source = "stdin" if str(path) == "-" else str(path)
    try:
        data = _read_stdin(limit) if source == "stdin" else _read_regular(path, limit)
    except _ERRORS as error:
        raise _unreadable(source, error) from error
    return _bounded(data, source, limit)


def read_if_there(path: str | Path) -> bytes | None:
    """Return the bytes of `path`, or None where there is no such file; one that cannot be read is refused."""
    try:
        data = _read_regular(path, MAX_DOCUMENT_BYTES)
    except _MISSING:
        return None
    except _ERRORS as error:
        raise _unreadable(str(path), error) from error
    return _bounded(data, str(path), MAX_DOCUMENT_BYTES)


def _unreadable(source: str, error: OSError | ValueError) -> GarboardError:
    return GarboardError(
        f"cannot read {source}: {_reason(error)}", hint="check the path and its permissions", error_class="unreadable"
    )


def _bounded(data: bytes, source: str, limit: int) -> bytes:
    if len(data) > limit:
        raise BadDocument(
            f"{source} is larger than {limit // (1024 * 1024)} MiB, which no manifest or patch should be",
            hint="split it, or check that this is the file you meant",
            error_class="too-large",
        )
    return data


def _read_stdin(limit: int) -> bytes:
    if sys.stdin is None:  # what Python makes of a standard input that is closed
        raise OSError(errno.EBADF, "it is closed")
    return sys.stdin.buffer.read(limit + 1)


def _read_regular(path: str | Path, limit: int) -> bytes:
    with open_regular(path) as (descriptor, size):
        # As much memory is reserved as is to be read. What the kernel shows as a file has no size.
        data = bytearray(os.read(descriptor, min(size, limit) + 1 if size else _CHUNK_BYTES))
        while data and len(data) <= limit and (more := os.read(descriptor, _CHUNK_BYTES)):
            data += more
        return bytes(data)


@contextmanager
def open_regular(path: str | Path) -> Iterator[tuple[int, int]]:
    """Open a file for reading, and say how large it is; a pipe, a socket or a device is refused without being opened.

    A pipe would make us wait for a writer, and opening is enough to make some devices act.
    """
    mode = stat_path(path).st_mode
    is_own_pipe = stat.S_ISFIFO(mode) and changed_root() is None and bool(_OWN_PIPE.fullmatch(str(path)))
    if not is_own_pipe:
        _refuse_others(path, mode)
    # Should it have become a pipe since, opening it does not wait.
    with opened(path, os.O_RDONLY | (0 if is_own_pipe else os.O_NONBLOCK | os.O_NOCTTY)) as descriptor:
        found = os.fstat(descriptor)
        if not is_own_pipe:
            _refuse_others(path, found.st_mode)
        yield descriptor, found.st_size


def _refuse_others(path: str | Path, mode: int) -> None:
    """Refuse what is no regular file."""
    if stat.S_ISREG(mode):
        return
    if stat.S_ISDIR(mode):
        raise BadDocument(f"{path} is a directory, not a file", hint="name a file in it", error_class="not-a-file")
    kinds = {stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket"}
    raise BadDocument(
        f"{path} is {kinds.get(stat.S_IFMT(mode), 'a device')}, not a regular file",
        hint="name a YAML or JSON file; - reads standard input where a command takes a document",
        error_class="not-a-file",
    )


def read_tail(path: str | Path, lines: int, *, limit: int = _TAIL_BYTES) -> list[str]:
    """Return the last lines of a file, however large it is; none where it cannot be read."""
    try:
        with open_regular(path) as (descriptor, size):
            data = os.pread(descriptor, limit, max(0, size - limit))
            return data.decode("utf-8", "replace").splitlines()[-lines:]
    except (*_ERRORS, BadDocument):
        return []


def read_part(path: str | Path, offset: int, count: int) -> bytes:
    """Return `count` bytes of a file from `offset` on, or fewer where it ends; anything but a file is refused."""
    try:
        with open_regular(path) as (descriptor, _):
            return _read_at(descriptor, offset, count)
    except _ERRORS as error:
        raise _unreadable(str(path), error) from error


def _read_at(descriptor: int, offset: int, count: int) -> bytes:
    data = b""
    while len(data) < count and (more := os.pread(descriptor, count - len(data), offset + len(data))):
        data += more
    return data


def write_file(path: str | Path, data: bytes, *, mode: int | None = None, expected: str | None = None) -> None:
    """Write `data` to `path` atomically: a reader sees the old file or the new one, also after a power cut.

    Without `mode` an existing file keeps its permissions and a new one gets those of the umask. The owner stays. If
    `expected` is the digest of the file that is to be replaced, or empty for none, another one is left as it is.
    """
    try:
        # A link is followed, so that the file behind it changes and the link stays.
        with opened_parent(through_links(path)) as (folder, name):
            _replace(folder, name, data, mode, expected)
    except _Moved as moved:
        raise StalePlan(
            f"the plan is stale: {path} {moved}", hint="find out who changed it, and put back what was there"
        ) from moved
    except _ERRORS as error:
        raise GarboardError(
            f"cannot write {path}: {_reason(error)}",
            hint="nothing was changed; check the folder, its permissions and the free space",
            error_class="unwritable",
        ) from error


class _Moved(Exception):  # what has happened to a file, in words
    pass


def _replace(folder: int, name: str, data: bytes, mode: int | None, expected: str | None) -> None:
    found = _stat_entry(folder, name)
    if found is not None and not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "it is a directory" if stat.S_ISDIR(found.st_mode) else "it is no regular file")
    temporary = f".{name}.{os.urandom(4).hex()}"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as handle:
            _keep_owner(descriptor, found)
            os.fchmod(descriptor, _permissions(found) if mode is None else mode)
            handle.write(data)
            handle.flush()
            os.fsync(descriptor)
        if expected == "":
            _put_new(folder, temporary, name)
        else:
            _refuse_moved(folder, name, expected)
            os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)
    os.fsync(folder)


def _put_new(folder: int, temporary: str, name: str) -> None:
    """Give a file a second name that nothing has yet; the kernel decides which of two programs is the first."""
    try:
        os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        raise _Moved("has been made since") from None
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        _refuse_moved(folder, name, "")
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)


def _refuse_moved(folder: int, name: str, expected: str | None) -> None:
    """Refuse to replace a file that has not the digest `expected`; whatever is there, if that is None."""
    if expected is None:
        return
    try:
        with os.fdopen(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder), "rb") as file:
            found = hashlib.sha256(file.read()).hexdigest()
    except FileNotFoundError:
        found = ""
    if found != expected:
        raise _Moved("has gone since" if not found else "has changed since" if expected else "has been made since")


@contextmanager
def new_file(path: str, *, mode: int) -> Iterator[Callable[[bytes], object]]:
    """Write a file piece by piece, which appears under its name when the block has ended and all is on the disk.

    Until then its name has a dot before and `.partial` behind, so that what a kill leaves is found. A file that is
    there is refused. If the block fails, nothing is left.
    """
    try:
        with opened_parent(through_links(path)) as (folder, name):
            if _stat_entry(folder, name) is not None:
                raise GarboardError(f"{path} is there already", hint="name another file", error_class="exists")
            with _complete(folder, name, f".{name}.partial", mode) as write:
                yield write
    except _ERRORS as error:
        raise GarboardError(
            f"cannot write {path}: {_reason(error)}",
            hint="nothing is left of it; check the folder, its permissions and the free space",
            error_class="unwritable",
        ) from error


@contextmanager
def _complete(folder: int, name: str, partial: str, mode: int) -> Iterator[Callable[[bytes], object]]:
    """Yield what writes to the partial file, and give it its name after that; what a killed write left is removed."""
    with suppress(FileNotFoundError):
        os.unlink(partial, dir_fd=folder)
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as handle:
            os.fchmod(descriptor, mode)
            yield handle.write
            handle.flush()
            os.fsync(descriptor)
        os.replace(partial, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(partial, dir_fd=folder)
        raise
    os.fsync(folder)


def _stat_entry(folder: int, name: str) -> os.stat_result | None:
    with suppress(FileNotFoundError):
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    return None


def _keep_owner(descriptor: int, found: os.stat_result | None) -> None:
    """Give the new file the owner of the old one, if we are allowed to."""
    if found is not None and (found.st_uid, found.st_gid) != (os.geteuid(), os.getegid()):
        with suppress(PermissionError):
            os.fchown(descriptor, found.st_uid, found.st_gid)


def _permissions(found: os.stat_result | None) -> int:
    if found is not None:
        return stat.S_IMODE(found.st_mode)
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask


def make_folder(path: str | Path, *, mode: int = 0o777) -> None:
    """Make a folder with its parents; every one that is missing gets `mode`, as far as the umask lets it."""
    try:
        _make_folders(Path(path), mode)
    except _ERRORS as error:
        raise GarboardError(
            f"cannot make the folder {path}: {_reason(error)}",
            hint="check its parent and the permissions there",
            error_class="unwritable",
        ) from error


def _make_folders(path: Path, mode: int) -> None:
    try:
        os.close(open_path(path, os.O_PATH | os.O_DIRECTORY))
    except FileNotFoundError:
        if path.parent == path:
            raise
        _make_folders(path.parent, mode)
        with opened_parent(path) as (folder, name), suppress(FileExistsError):
            os.mkdir(name, mode, dir_fd=folder)
        os.close(open_path(path, os.O_PATH | os.O_DIRECTORY))  # fails with the reason if something else is there


def file_owner(path: str | Path) -> tuple[int, int, int] | None:
    """Return user, group and mode of a file, or None where there is none; a failed look is an error."""
    try:
        found = stat_path(path)
    except (*_MISSING, ValueError):
        return None
    except OSError as error:
        raise _unreadable(str(path), error) from error
    return found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)


def file_size(path: str | Path) -> int:
    """Return how many bytes a file has; 0 where there is none."""
    try:
        return stat_path(path).st_size
    except OSError:
        return 0


def free_space(path: str | Path) -> int:
    """Return how many bytes are free on the disk of a folder, or of the nearest one above it that is there."""
    folder = Path(path)
    while not is_folder(folder) and folder != folder.parent:
        folder = folder.parent
    try:
        with opened_folder(folder) as descriptor:
            found = os.fstatvfs(descriptor)
    except OSError as error:
        raise _unreadable(str(folder), error) from error
    return found.f_bavail * found.f_frsize


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


class HostFolder:
    """A folder of this machine whose files are addressed by their name below `root`.

    `..` removes the name before it, as in every path that kubeadm joins: that folder need not exist.
    """

    def __init__(self, root: str | Path) -> None:
        self.root = Path(clean_path(str(root)))

    def read(self, name: str) -> bytes | None:
        """Return the content, or None when there is no such file; an absolute name is taken as it is."""
        return read_if_there(self.root / name)

    def write_new(self, name: str, data: bytes, *, mode: int) -> None:
        """Make a file and missing folders; of two programs that make it at once, one does, and the other is refused."""
        path = self.root / name
        make_folder(path.parent)
        try:
            write_file(path, data, mode=mode, expected="")
        except StalePlan as error:
            raise GarboardError(
                f"file already exists: {path}", hint="another program has just made it", error_class="exists"
            ) from error

    def remove(self, name: str) -> None:
        remove_file(self.root / name)

    def path_of(self, name: str) -> str:
        return str(self.root / name)
