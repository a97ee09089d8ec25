"""Locks that one process at a time holds: that of this node, and that of a user who may not take it."""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator

from garboard.errors import GarboardError
from garboard.retry import CLOCK, Clock, Pauses, retry

_PAUSES = Pauses.every(0.05)
_FILE_MODE = 0o600


class NodeLocked(GarboardError):
    """Another run holds the lock of this node; nothing has been changed."""

    default_class = "locked"


@contextlib.contextmanager
def holding(
    file: int, who: str, *, wait_s: float, on_wait: Callable[[NodeLocked], None], clock: Clock = CLOCK
) -> Iterator[None]:
    """Hold the lock of an open file, which names its holder; after `wait_s` raise with who that is."""
    _acquire(file, wait_s, on_wait, clock)
    _name_holder(file, f"{who} (process {os.getpid()})")
    yield
    _name_holder(file, "")


def _name_holder(file: int, who: str) -> None:
    # The lock is held whether its file can say so or not, as on a full disk.
    with contextlib.suppress(OSError):
        os.ftruncate(file, 0)
        os.pwrite(file, who.encode(), 0)


def holder_of(file: int) -> str:
    """Return who holds the lock of an open file; empty if nobody does."""
    try:
        # Shared, and for a moment: a command that finds it held like this tries again.
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _holder(file)
    return ""


@contextlib.contextmanager
def user_lock(
    who: str, *, wait_s: float = 0.0, on_wait: Callable[[NodeLocked], None] = lambda _error: None
) -> Iterator[None]:
    """Hold the lock of a user who may not take that of the node, so that two commands of theirs wait for each other.

    Where there is no place for it, nobody waits: what writes a file refuses one that has come meanwhile in any case.
    """
    file = _open_for_user()
    if file is None:
        yield
        return
    try:
        with holding(file, f"garboard {who}", wait_s=wait_s, on_wait=on_wait):
            yield
    finally:
        os.close(file)


def _open_for_user() -> int | None:
    """Open the lock file of the user; None if that cannot be, or if somebody else made it to keep us waiting."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    path = f"{runtime}/garboard.lock" if runtime.startswith("/") else f"/tmp/garboard-{os.geteuid()}.lock"
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, _FILE_MODE)
    except OSError:
        return None
    if os.fstat(file).st_uid == os.geteuid():
        return file
    os.close(file)
    return None


def _acquire(file: int, wait_s: float, on_wait: Callable[[NodeLocked], None], clock: Clock) -> None:
    told = set[str]()

    def report(error: GarboardError, _left_s: float) -> None:
        if error.message not in told and isinstance(error, NodeLocked):
            told.add(error.message)
            on_wait(error)

    retry(
        lambda: _try_lock(file),
        timeout_s=wait_s,
        pauses=_PAUSES,
        is_passing=lambda error: isinstance(error, NodeLocked),
        on_failure=report,
        clock=clock,
    )


def _try_lock(file: int) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise NodeLocked(
            f"{_holder(file)} is changing this node",
            hint="wait until it has ended; garboard status shows how far it is",
        ) from None


def _holder(file: int) -> str:
    return os.pread(file, 4096, 0).decode("utf-8", "replace") or "another run"
