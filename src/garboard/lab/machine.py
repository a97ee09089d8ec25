"""What the lab asks of the machine; `garboard.host.Machine` satisfies it and only the command line wires the two."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol


class Finished(Protocol):
    """A process that has ended: its status and what it wrote."""

    @property
    def status(self) -> int: ...
    @property
    def stdout(self) -> str: ...
    @property
    def stderr(self) -> str: ...


class Machine(Protocol):
    """Processes and files of this machine."""

    def run(
        self,
        command: Sequence[str | Path],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        timeout_s: float | None = None,
        check: bool = True,
    ) -> Finished:
        """Run `command` to its end; with `check`, a status other than 0 is an error that carries its output."""

    def stream(
        self,
        command: Sequence[str | Path],
        on_line: Callable[[str], None],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        shown: str | None = None,
    ) -> Finished:
        """Run `command`, hand over each line it writes as it comes, and fail if it does; `shown` names it then."""

    def start_detached(self, command: Sequence[str | Path], *, log: Path, keep: Sequence[int] = ()) -> int:
        """Start `command` in a session of its own, output in `log`, with the descriptors `keep`; return its pid."""

    def find_program(self, name: str) -> Path | None:
        """Return where `name` is on PATH or beside this Python, or None."""

    def read_file(self, path: Path) -> bytes: ...

    def write_file(self, path: Path, data: bytes, *, mode: int | None = None) -> None: ...

    def locked(self, path: Path, *, shared: bool = False, wait: bool = True) -> AbstractContextManager[bool]:
        """Hold the lock file `path` while the block runs; without `wait`, the block learns whether we have it."""

    def fetch(self, url: str, *, timeout_s: float) -> bytes:
        """Return the bytes behind `url`; `Unreachable` when the server is not there."""
