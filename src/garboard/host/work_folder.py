"""A folder in which something is made over several commands: one of them at a time, and no links in it.

What is written there may be secret, and what is found there may have been put there by somebody else: the folder has to
be ours alone, every path in it is looked up without following links, and each file is replaced as a whole.
"""

import errno
import fcntl
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from garboard.errors import BadDocument, GarboardError, NotReady
from garboard.host.beneath import open_beneath
from garboard.host.file_trees import read_open_tree
from garboard.host.files import MAX_DOCUMENT_BYTES
from garboard.host.root import open_path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_FOLDER_MODE, _FILE_MODE = 0o700, 0o600
_LOCK = ".lock"
_SHARED = stat.S_IWGRP | stat.S_IWOTH


class WorkFolder:
    """An open folder; names in it are relative paths, of which no part may be a link."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    @classmethod
    @contextmanager
    def opened(cls, path: Path) -> Iterator["WorkFolder"]:
        """Open a folder, or make it; one that is a link, or that somebody else may write to, is refused."""
        with suppress(FileExistsError), _with_reason("make", path):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.mkdir(mode=_FOLDER_MODE)
        with _with_reason("open", path):
            descriptor = open_path(path, _FOLDER)
        try:
            _refuse_shared(path, os.fstat(descriptor))
            yield cls(path.absolute(), descriptor)
        finally:
            os.close(descriptor)

    @contextmanager
    def locked(self, who: str) -> Iterator[int]:
        """Hold the lock of the folder; yield its descriptor, with which a program that is started holds it, too."""
        with _with_reason("lock", self.path):
            lock = self._open(_LOCK, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.pread(lock, 4096, 0).decode("utf-8", "replace") or "another command"
                raise NotReady(
                    f"{holder}, or an installer that it has started, is at work in {self.path}",
                    hint="wait until it has ended, or end it; then give the command again",
                    error_class="locked",
                ) from None
            os.ftruncate(lock, 0)
            os.pwrite(lock, f"{who} (process {os.getpid()})".encode(), 0)
            yield lock
            os.ftruncate(lock, 0)
        finally:
            os.close(lock)

    def read(self, name: str, *, limit: int = MAX_DOCUMENT_BYTES) -> bytes | None:
        """Return the content of a file, or None where there is none; anything but a file is refused."""
        with _with_reason("read", self.path / name):
            try:
                descriptor = self._open(name, os.O_RDONLY | os.O_NONBLOCK)
            except (FileNotFoundError, NotADirectoryError):
                return None
            with os.fdopen(descriptor, "rb") as file:
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    raise OSError(errno.EINVAL, "it is no regular file")
                data = file.read(limit + 1)
        if len(data) > limit:
            raise BadDocument(f"{self.path / name} has more than {limit} bytes", error_class="too-large")
        return data

    def write(self, name: str, data: bytes) -> None:
        """Replace a file atomically and durably, with the folders that it needs; a new one is ours alone."""
        with _with_reason("write", self.path / name), self._parent(name) as (folder, last):
            temporary = f".{last}.{os.urandom(4).hex()}"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            descriptor = os.open(temporary, flags, _FILE_MODE, dir_fd=folder)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    os.fchmod(descriptor, _mode_of(folder, last))
                    file.write(data)
                    file.flush()
                    os.fsync(descriptor)
                os.replace(temporary, last, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(FileNotFoundError):
                    os.unlink(temporary, dir_fd=folder)
                raise
            os.fsync(folder)

    def append(self, name: str, data: bytes) -> None:
        """Add to the end of a file."""
        with _with_reason("write", self.path / name), self._parent(name) as (folder, last):
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
            with os.fdopen(os.open(last, flags, _FILE_MODE, dir_fd=folder), "ab") as file:
                file.write(data)

    def make_folder(self, name: str) -> Path:
        """Make a folder that must not be there yet, and return its path."""
        with _with_reason("make", self.path / name), self._parent(name) as (folder, last):
            os.mkdir(last, _FOLDER_MODE, dir_fd=folder)
            os.fsync(folder)
        return self.path / name

    def remove(self, name: str) -> None:
        """Remove a file; it is no failure if there is none."""
        with (
            _with_reason("remove", self.path / name),
            suppress(FileNotFoundError),
            self._parent(name) as (folder, last),
        ):
            os.unlink(last, dir_fd=folder)

    def tree(self, name: str) -> Mapping[str, bytes | str]:
        """Return what is below a folder by its path from there: the content of files, and in words what is none."""
        with _with_reason("read", self.path / name):
            descriptor = self._open(name, _FOLDER)
            try:
                return read_open_tree(descriptor, self.path / name)
            finally:
                os.close(descriptor)

    @contextmanager
    def _parent(self, name: str) -> Iterator[tuple[int, str]]:
        """Keep the folder of a path open, made if it is missing, and say which name in it is meant."""
        *folders, last = _parts(name)
        descriptor = os.dup(self._descriptor)
        try:
            for each in folders:
                with suppress(FileExistsError):
                    os.mkdir(each, _FOLDER_MODE, dir_fd=descriptor)
                child = os.open(each, _FOLDER, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = child
            yield descriptor, last
        finally:
            os.close(descriptor)

    def _open(self, name: str, flags: int) -> int:
        return open_beneath(
            self._descriptor, "/".join(_parts(name)), flags | os.O_NOFOLLOW, _FILE_MODE, allows_links=False
        )


def _parts(name: str) -> list[str]:
    parts = name.split("/")
    if not name or any(each in ("", ".", "..") or "\0" in each for each in parts):
        raise OSError(errno.EINVAL, "it leads out of the folder, or nowhere")
    return parts


def _mode_of(folder: int, name: str) -> int:
    """Return the permissions that a file has; one that is no file is refused."""
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return _FILE_MODE
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "there is a link, or something else that is no file")
    return stat.S_IMODE(found.st_mode)


def _refuse_shared(path: Path, found: os.stat_result) -> None:
    if found.st_uid != os.geteuid() or found.st_mode & _SHARED:
        raise NotReady(
            f"{path} is not ours alone: others may write to it",
            hint=f"choose another folder, or: chown root {path} && chmod 700 {path}",
            error_class="shared-folder",
        )


@contextmanager
def _with_reason(verb: str, path: Path) -> Iterator[None]:
    try:
        yield
    except FileExistsError:
        raise
    except (OSError, ValueError) as error:
        is_link = isinstance(error, OSError) and error.errno in (errno.ELOOP, errno.ENOTDIR)
        reason = "it is a link, or there is one in its path" if is_link else getattr(error, "strerror", None) or error
        raise GarboardError(
            f"cannot {verb} {path}: {reason}",
            hint="check the folder, its permissions and the free space",
            error_class="unreadable" if verb in ("read", "open") else "unwritable",
        ) from error
