"""Reading and writing files: bounded reads, and writes that are whole or not there at all."""

import contextlib
import errno
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from garboard.errors import BadDocument, GarboardError
from garboard.host.root import at

# Nothing a person writes for a cluster comes near this; what does is a mistake (a core dump, an image, a device).
MAX_DOCUMENT_BYTES = 32 * 1024 * 1024

_TAIL_BYTES = 64 * 1024

# A path can hold what no file system takes, such as a NUL byte; Python then has no OSError but a ValueError.
_ERRORS = (OSError, ValueError)


def read_file(path: str | Path, *, limit: int = MAX_DOCUMENT_BYTES) -> bytes:
    """Return the bytes of `path` (`-` is stdin); anything but a readable file of at most `limit` bytes is refused."""
    source = "stdin" if str(path) == "-" else str(path)
    try:
        data = _read_stdin(limit) if source == "stdin" else _read_regular(path, limit)
    except (OSError, ValueError) as error:  # a name with a NUL in it is a ValueError
        raise GarboardError(
            f"cannot read {source}: {getattr(error, 'strerror', None) or error}",
            hint="check the path and its permissions",
            error_class="unreadable",
        ) from error
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
    place = at(path)
    mode = place.stat().st_mode
    if stat.S_ISDIR(mode):
        raise BadDocument(f"{path} is a directory, not a file", hint="name a file in it", error_class="not-a-file")
    if stat.S_ISBLK(mode) or stat.S_ISSOCK(mode):
        raise BadDocument(f"{path} is not a regular file", hint="name a YAML or JSON file", error_class="not-a-file")
    with place.open("rb") as handle:
        return handle.read(limit + 1)


def read_tail(path: str | Path, lines: int, *, limit: int = _TAIL_BYTES) -> list[str]:
    """Return the last lines of a file, however large it is; none where it cannot be read."""
    try:
        with at(path).open("rb") as handle:
            size = handle.seek(0, os.SEEK_END)
            handle.seek(max(0, size - limit))
            return handle.read(limit).decode("utf-8", "replace").splitlines()[-lines:]
    except _ERRORS:
        return []


def read_if_there(path: str | Path) -> bytes | None:
    """Return the bytes of `path`, or None where there is no such file; one that cannot be read is refused."""
    try:
        at(path).stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except _ERRORS:
        pass  # the read below fails with the reason
    return read_file(path)


def write_file(path: str | Path, data: bytes, *, mode: int | None = None) -> None:
    """Put `data` at `path` in one move: a reader sees the old file or the new one, also after a power cut.

    Without `mode` an existing file keeps its permissions and a new one gets those of the umask. The owner stays.
    """
    try:
        _replace(at(path), data, mode)
    except _ERRORS as error:
        raise GarboardError(
            f"cannot write {path}: {_reason(error)}",
            hint="nothing was changed; check the folder, its permissions and the free space",
            error_class="unwritable",
        ) from error


def _replace(target: Path, data: bytes, mode: int | None) -> None:
    import tempfile  # brings compression with it, which those who only read need not load

    # A link is followed, so that the file behind it changes and the link stays.
    target = target.resolve()
    descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as handle:
            _keep_owner(handle.fileno(), target)
            os.fchmod(handle.fileno(), _permissions(target) if mode is None else mode)
            handle.write(data)
            handle.flush()
            os.fsync(handle.fileno())
        Path(temporary).replace(target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            Path(temporary).unlink()
        raise
    sync_folder(target.parent)


def sync_folder(path: Path) -> None:
    """Make what was renamed, made or removed in a folder last; the path is taken as it is."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _keep_owner(descriptor: int, target: Path) -> None:
    """Give the new file to whom the old one belongs, as far as we may."""
    with contextlib.suppress(FileNotFoundError, PermissionError):
        found = target.stat()
        if (found.st_uid, found.st_gid) != (os.geteuid(), os.getegid()):
            os.fchown(descriptor, found.st_uid, found.st_gid)


def _permissions(target: Path) -> int:
    try:
        return stat.S_IMODE(target.stat().st_mode)
    except FileNotFoundError:
        umask = os.umask(0)
        os.umask(umask)
        return 0o666 & ~umask


def make_folder(path: str | Path, *, mode: int = 0o777) -> None:
    """Make a folder with its parents; every one that is missing gets `mode`, as far as the umask lets it."""
    try:
        _make_folders(at(path), mode)
    except _ERRORS as error:
        raise GarboardError(
            f"cannot make the folder {path}: {_reason(error)}",
            hint="check its parent and the permissions there",
            error_class="unwritable",
        ) from error


def is_folder(path: str | Path) -> bool:
    """Say whether `path` is a folder, or a link to one; what cannot be looked at is none."""
    try:
        return at(path).is_dir()
    except _ERRORS:
        return False


def _make_folders(path: Path, mode: int) -> None:
    missing = [each for each in (path, *path.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir(mode, exist_ok=True)
    if not path.is_dir():
        path.mkdir()  # to fail with the reason


def file_owner(path: str | Path) -> tuple[int, int, int] | None:
    """Return user, group and mode of a file, or None where there is no file."""
    try:
        found = at(path).stat()
    except _ERRORS:
        return None
    return found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)


def change_owner(path: str | Path, *, uid: int, gid: int, mode: int | None) -> None:
    """Give a file away with that mode; without one, a folder and all below it."""
    try:
        target = at(path)
        for each in (target, *(target.rglob("*") if mode is None else ())):
            os.lchown(each, uid, gid)
        if mode is not None:
            target.chmod(mode)
    except _ERRORS as error:
        raise GarboardError(
            f"cannot give {path} to {uid}:{gid}: {_reason(error)}",
            hint="only root may give files away",
            error_class="unwritable",
        ) from error


def folder_entries(path: str | Path) -> tuple[str, ...]:
    """Return the names in a folder, sorted; none where there is no folder that can be looked into."""
    try:
        return tuple(sorted(each.name for each in at(path).iterdir()))
    except _ERRORS:
        return ()


def paths_below(path: str | Path) -> tuple[str, ...]:
    """Return the path of all that is below a folder; links are not followed."""
    root = at(path)
    return tuple(sorted(str(Path(path) / each.relative_to(root)) for each in root.rglob("*")))


def list_tree(folder: str | Path) -> list[str]:
    """Return the path of every file below `folder`, from there and with `/`, without reading any.

    The folder must be one and not a link to one; a link below it counts as a file and is not descended into.
    """
    try:
        root = at(folder, follows_last=False)
        if not root.is_symlink() and not root.exists():
            # As for a file: what is not there is no document that could be refused.
            raise GarboardError(
                f"cannot list {folder}: it is not there", hint="check the path", error_class="unreadable"
            )
        if root.is_symlink() or not root.is_dir():
            what = "a symbolic link" if root.is_symlink() else "not a directory"
            hint = "name the directory itself"
            raise BadDocument(f"cannot list {folder}: it is {what}", hint=hint, error_class="not-a-directory")
        return sorted(path.relative_to(root).as_posix() for path in _walk(root))
    except OSError as error:
        raise GarboardError(
            f"cannot list {error.filename or folder}: {_reason(error)}",
            hint="check the permissions of the directory",
            error_class="unreadable",
        ) from error


def _walk(root: Path) -> Iterator[Path]:
    def fail(error: OSError) -> None:
        raise error  # os.walk would skip the folder without a word

    for folder, folders, files in os.walk(root, onerror=fail):
        links = [name for name in folders if (Path(folder) / name).is_symlink()]
        yield from (Path(folder) / name for name in (*links, *files))


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
