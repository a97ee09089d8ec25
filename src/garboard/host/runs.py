"""The folders of runs on this machine, and the lock that only one run at a time holds."""

import contextlib
import errno
import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from garboard.errors import GarboardError
from garboard.host.files import make_folder, read_file, sync_folder, write_file
from garboard.host.root import at

STATE_DIR = Path("/var/lib/garboard")
_FOLDER_MODE, _FILE_MODE = 0o700, 0o600
_JOURNAL, _KEPT = "journal.jsonl", "kept"
_LOCK_INTERVAL_S = 0.05


class RunFolder:
    """One run: `journal.jsonl`, and beside it `kept/` with contents named by their digest."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: int | None = None

    @property
    def name(self) -> str:
        return self.path.name

    def append(self, data: bytes, *, is_lasting: bool) -> None:
        with _told("write", self.path / _JOURNAL):
            if self._file is None:
                self._file = self._open()
            _write_all(self._file, data)
            if is_lasting:
                os.fdatasync(self._file)

    def _open(self) -> int:
        """Open the journal behind its last whole line; what a kill has torn is cut off."""
        path = at(self.path / _JOURNAL)
        is_new = not path.exists()
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, _FILE_MODE)
        if is_new:
            sync_folder(path.parent)
            sync_folder(path.parent.parent)
        else:
            os.ftruncate(file, path.read_bytes().rfind(b"\n") + 1)
        return file

    def lines(self) -> bytes:
        path = self.path / _JOURNAL
        return read_file(path) if at(path).exists() else b""

    def keep(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        path = self.path / _KEPT / digest
        if not at(path).exists():
            make_folder(path.parent, mode=_FOLDER_MODE)
            write_file(path, data, mode=_FILE_MODE)
        return digest

    def kept(self, sha256: str) -> bytes:
        path = self.path / _KEPT / sha256
        data = read_file(path) if at(path).exists() else b""
        if hashlib.sha256(data).hexdigest() != sha256:
            raise GarboardError(
                f"{path} has gone, or holds something else than was kept there",
                hint="the disk may be damaged; garboard reset cleans the node up",
                error_class="bad-journal",
            )
        return data

    def drop_kept(self) -> None:
        path = at(self.path / _KEPT)
        with _told("remove", path):
            if path.exists():
                shutil.rmtree(path)

    def remove(self) -> None:
        """Remove the run with all that it says."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
        with _told("remove", self.path):
            shutil.rmtree(at(self.path))


class RunFolders:
    """All runs of this machine, below /var/lib/garboard unless another folder is given."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = root or STATE_DIR

    def all(self) -> tuple[RunFolder, ...]:
        """Return every run, the oldest first: names begin with the time."""
        runs = self.root / "runs"
        names = sorted(each.name for each in at(runs).iterdir()) if at(runs).is_dir() else ()
        return tuple(RunFolder(runs / name) for name in names)

    def new(self, name: str) -> RunFolder:
        path = self.root / "runs" / name
        make_folder(path, mode=_FOLDER_MODE)
        return RunFolder(path)

    @contextlib.contextmanager
    def lock(self, who: str, *, wait_s: float = 0.0) -> Iterator[None]:
        """Hold the lock of this node; if somebody else keeps it for longer than `wait_s`, say who."""
        make_folder(self.root, mode=_FOLDER_MODE)
        with _told("lock", self.root / "lock"):
            file = os.open(at(self.root / "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _FILE_MODE)
        try:
            self._acquire(file, time.monotonic() + wait_s)
            os.ftruncate(file, 0)
            os.pwrite(file, f"{who} (process {os.getpid()})".encode(), 0)
            yield
            os.ftruncate(file, 0)
        finally:
            os.close(file)

    def _acquire(self, file: int, give_up_at: float) -> None:
        while True:
            try:
                return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= give_up_at:
                    raise self._held_by(file) from None
                time.sleep(_LOCK_INTERVAL_S)

    def _held_by(self, file: int) -> GarboardError:
        holder = os.pread(file, 4096, 0).decode("utf-8", "replace") or "another run"
        return GarboardError(
            f"{holder} is changing this node",
            hint="wait until it has ended; garboard status shows how far it is",
            error_class="locked",
        )


def _write_all(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]


@contextlib.contextmanager
def _told(verb: str, path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        hint = "free some space" if error.errno == errno.ENOSPC else "garboard keeps its journal there; run it as root"
        raise GarboardError(
            f"cannot {verb} {path}: {error.strerror or error}", hint=hint, error_class="unwritable"
        ) from error
