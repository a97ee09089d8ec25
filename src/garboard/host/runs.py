"""The folders with the journals of this machine's runs, and the lock that only one run at a time holds."""

import contextlib
import errno
import hashlib
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from garboard.errors import GarboardError, NotReady
from garboard.host.files import make_folder, read_file, write_file
from garboard.host.folders import folder_entries, names_in, sync_folder
from garboard.host.locks import NodeLocked, holder_of, holding
from garboard.host.removal import remove_folder
from garboard.host.root import exists, is_folder, open_path, opened, opened_parent, stat_path
from garboard.retry import CLOCK, Clock

STATE_DIR = Path("/var/lib/garboard")
_FOLDER_MODE, _FILE_MODE = 0o700, 0o600
_JOURNAL, _KEPT = "journal.jsonl", "kept"
_FORGOTTEN = "forgotten"
# The moment of its start, and whatever tells it from others.
_NAME = re.compile(r"\d{8}T\d{6}.*-.+")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_CHUNK_BYTES = 1024 * 1024


class RunFolder:
    """One run: `journal.jsonl`, and beside it `kept/` with contents named by their digest."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: int | None = None

    @property
    def name(self) -> str:
        return self.path.name

    def append(self, data: bytes, *, is_lasting: bool) -> None:
        with _with_reason("write", self.path / _JOURNAL):
            if self._file is None:
                self._file = self._open()
            size = os.fstat(self._file).st_size
            try:
                _write_all(self._file, data)
                if is_lasting:
                    os.fdatasync(self._file)
            except OSError:
                # On a full disk, a part of the line may be there, and what is written later must not stand behind it.
                os.ftruncate(self._file, size)
                raise

    def _open(self) -> int:
        """Open the journal for appending after its last whole line; a torn line at the end is truncated."""
        path = self.path / _JOURNAL
        is_new = not exists(path)
        file = open_path(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK, _FILE_MODE)
        if is_new:
            sync_folder(path.parent)
            sync_folder(path.parent.parent)
        else:
            os.ftruncate(file, _read_all(file).rfind(b"\n") + 1)
        return file

    def lines(self) -> bytes:
        if self._file is not None:  # what was written there, wherever a folder of its path has gone
            return _read_all(self._file)
        path = self.path / _JOURNAL
        return read_file(path) if exists(path) else b""

    def keep(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        path = self.path / _KEPT / digest
        if not exists(path):
            make_folder(path.parent, mode=_FOLDER_MODE)
            write_file(path, data, mode=_FILE_MODE)
        return digest

    def kept(self, sha256: str) -> bytes:
        path = self.path / _KEPT / sha256
        data = read_file(path) if exists(path) else b""
        if hashlib.sha256(data).hexdigest() != sha256:
            raise NotReady(
                f"{path} has gone, or holds something else than was kept there",
                hint=f"the disk may be damaged; garboard runs forget {self.name} leaves the node as it is, "
                "garboard reset cleans it up",
                error_class="bad-journal",
            )
        return data

    def kept_digests(self) -> tuple[str, ...]:
        """Return the digests of the contents that are kept; the first one was that of the plan."""
        return tuple(name for name in folder_entries(self.path / _KEPT) if _DIGEST.fullmatch(name))

    def drop_kept(self) -> None:
        remove_folder(self.path / _KEPT)

    def remove(self) -> None:
        """Remove the run with its journal and all that it kept."""
        self._close()
        self.drop_kept()  # before the journal: contents without one are those of a damaged run
        remove_folder(self.path)

    def set_aside(self) -> Path:
        """Move the run out of the way with all that it kept, and return where it is now."""
        self._close()
        place = self.path.parent.parent / _FORGOTTEN / self.name
        make_folder(place.parent, mode=_FOLDER_MODE)
        with (
            _with_reason("move", self.path),
            opened_parent(self.path) as (runs, name),
            opened_parent(place) as (forgotten, _),
        ):
            os.rename(name, name, src_dir_fd=runs, dst_dir_fd=forgotten)
            os.fsync(forgotten)
            os.fsync(runs)
        return place

    def _close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


class RunFolders:
    """All runs of this machine, below /var/lib/garboard unless another folder is given."""

    def __init__(self, root: Path | None = None, clock: Clock = CLOCK) -> None:
        self.root = root or STATE_DIR
        self._clock = clock

    def all(self) -> tuple[RunFolder, ...]:
        """Return every run by its name; what else may be in the folder is left alone."""
        runs = self.root / "runs"
        with _with_reason("read", runs):
            names = names_in(runs) if is_folder(runs) else ()
            return tuple(RunFolder(runs / name) for name in names if _is_run(runs / name))

    def new(self, name: str) -> RunFolder:
        path = self.root / "runs" / name
        make_folder(path, mode=_FOLDER_MODE)
        return RunFolder(path)

    @contextlib.contextmanager
    def lock(
        self, who: str, *, wait_s: float = 0.0, on_wait: Callable[[NodeLocked], None] = lambda _error: None
    ) -> Iterator[None]:
        """Hold the lock of this node; if another run keeps it for longer than `wait_s`, raise with who that is.

        `on_wait` is told whom it waits for, once for each holder.
        """
        with contextlib.ExitStack() as stack:
            while True:
                file = self._open_lock()
                stack.callback(os.close, file)
                stack.enter_context(holding(file, who, wait_s=wait_s, on_wait=on_wait, clock=self._clock))
                if self._is_lock(file):
                    break
                stack.close()  # somebody removed the file while it was waited for: nobody else looks at this one
            yield

    def _open_lock(self) -> int:
        make_folder(self.root, mode=_FOLDER_MODE)
        with _with_reason("lock", self.root / "lock"):
            return open_path(self.root / "lock", os.O_RDWR | os.O_CREAT | os.O_NONBLOCK, _FILE_MODE)

    def _is_lock(self, file: int) -> bool:
        """Say whether an open file is the one that has the name of the lock."""
        try:
            return os.path.samestat(os.fstat(file), stat_path(self.root / "lock"))
        except FileNotFoundError:
            return False

    def lock_holder(self) -> str:
        """Return who holds the lock of this node; empty if nobody does, and nobody is kept from taking it."""
        path = self.root / "lock"
        if not exists(path):
            return ""
        with _with_reason("read", path), opened(path, os.O_RDONLY | os.O_NONBLOCK) as file:
            return holder_of(file)


def _is_run(path: Path) -> bool:
    """Say whether a path is the folder of a run, also of one that was killed before it had a journal."""
    try:
        with opened(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW) as folder:
            names = {each.name for each in os.scandir(folder)}
    except (FileNotFoundError, NotADirectoryError):
        return False
    return _JOURNAL in names or (names <= {_KEPT} and _NAME.fullmatch(path.name) is not None)


def _read_all(file: int) -> bytes:
    data = bytearray()
    while more := os.pread(file, _CHUNK_BYTES, len(data)):
        data += more
    return bytes(data)


def _write_all(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]


@contextlib.contextmanager
def _with_reason(verb: str, path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        hint = "free some space" if error.errno == errno.ENOSPC else "garboard keeps its journal there; run it as root"
        raise GarboardError(
            f"cannot {verb} {path}: {error.strerror or error}", hint=hint, error_class="unwritable"
        ) from error
