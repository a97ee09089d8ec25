"""Programs that we start and look after from time to time, and that go on if we are killed."""

import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from garboard.host.processes import start_detached


class DetachedChild:
    """A program in a session of its own."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._status: int | None = None

    @classmethod
    def start(cls, command: Sequence[str | Path], *, log: Path) -> "DetachedChild":
        log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return cls(start_detached(command, log=log))

    def status(self) -> int | None:
        """Return how it has ended, None while it runs; what a signal has ended has its negative number."""
        if self._status is None:
            try:
                found, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:
                self._status = -1
            else:
                self._status = os.waitstatus_to_exitcode(status) if found else None
        return self._status

    def end(self) -> None:
        """Ask the program and all that it has started to end."""
        if self.status() is None:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGTERM)
