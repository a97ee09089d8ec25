"""What the lab asks of the machine; `garboard.host.Machine` satisfies it and only the command line wires the two.

What reads, writes or removes files goes through these Protocols. Questions about a path (is it there, is it a folder,
where does the link lead, what is in the folder) are asked of `pathlib`, which changes nothing. Sockets, signals and
limits of the process are the lab's own business, in `control`, `creation`, `supervisor`, `removal` and `preflight`.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Protocol

# Programs are larger than any document.
MAX_PROGRAM_BYTES = 1024**3


class FinishedCommand(Protocol):
    """A process that has ended: its status and what it wrote."""

    @property
    def status(self) -> int: ...
    @property
    def stdout(self) -> str: ...
    @property
    def stderr(self) -> str: ...


class LabFilesystem(Protocol):
    """Files and folders of this machine; what fails is a `GarboardError` that names the path."""

    def read_file(self, path: Path, *, limit: int = ...) -> bytes:
        """Return the bytes of a file; one larger than `limit`, by default that of documents, is refused."""

    def read_if_there(self, path: Path) -> bytes | None: ...

    def read_kernel_file(self, path: Path) -> str:
        """Return the text of a file of /proc or /sys."""

    def write_file(self, path: Path, data: bytes, *, mode: int | None = None) -> None:
        """Replace a file in one move; it outlives a power cut."""

    def write_in_place(self, path: Path, data: bytes, *, mode: int | None = None) -> None:
        """Write into the file itself: for the kernel's own files, and for what need not outlive a power cut."""

    def writing(self, path: Path) -> AbstractContextManager[IO[bytes]]:
        """Open a file for content that is too large to be held at once."""

    def make_folder(self, path: Path, *, mode: int = 0o777) -> None:
        """Make a folder with its parents; one that is there stays as it is."""

    def make_link(self, path: Path, target: str | Path) -> None:
        """Make `path` a symbolic link to `target`."""

    def copy_file(self, source: Path, target: Path, *, mode: int | None = None) -> None: ...

    def copy_tree(self, source: Path, target: Path, *, follows_links: bool) -> None: ...

    def link_tree(self, source: Path, target: Path, *, copied: str) -> None:
        """Copy a folder by hard links; only files whose name ends with `copied` become files of their own."""

    def copy_attributes(self, source: Path, target: Path) -> None:
        """Give `target` the mode, times, extended attributes and owner of `source`."""

    def set_attribute(self, path: Path, name: str, value: bytes) -> None:
        """Set an extended attribute."""

    def change_mode(self, path: Path, mode: int) -> None: ...

    def rename(self, path: Path, target: Path) -> None: ...

    def remove_file(self, path: Path) -> None: ...

    def remove_tree(self, path: Path, *, ignore_errors: bool = False) -> None: ...

    def remove_group(self, path: Path) -> bool:
        """Remove a control group; say whether it is gone, which one in use is not."""

    def free_bytes(self, path: Path) -> int: ...


class LabMachine(LabFilesystem, Protocol):
    """Files and processes of this machine, and what it reaches over the network."""

    def run(
        self,
        command: Sequence[str | Path],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        timeout_s: float | None = None,
        check: bool = True,
    ) -> FinishedCommand:
        """Run `command` to its end; with `check`, a status other than 0 is an error that carries its output."""

    def stream(
        self,
        command: Sequence[str | Path],
        on_line: Callable[[str], None],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        shown: str | None = None,
    ) -> FinishedCommand:
        """Run `command`, hand over each line it writes as it comes, and fail if it does; `shown` names it then."""

    def start_detached(self, command: Sequence[str | Path], *, log: Path, keep: Sequence[int] = ()) -> int:
        """Start `command` in a session of its own, output in `log`, with the descriptors `keep`; return its pid."""

    def find_program(self, name: str) -> Path | None:
        """Return where `name` is on PATH or beside this Python, or None."""

    def locked(self, path: Path, *, shared: bool = False, wait: bool = True) -> AbstractContextManager[bool]:
        """Hold the lock file `path` while the block runs; without `wait`, the block learns whether we have it."""

    def fetch(self, url: str, *, timeout_s: float) -> bytes:
        """Return the bytes behind `url`; `Unreachable` when the server is not there."""
