"""The unit files that a node itself has written, which of them are enabled, and when its timers fired.

Enabled is what a link in a folder such as `timers.target.wants` names, as with systemd: it is on the node's disk, and
outlives a stop. What is below /run is transient, and goes with the node.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from garboard.lab.machine import LabFilesystem

UNIT_FOLDER = "etc/systemd/system"
TRANSIENT_FOLDERS = ("run/systemd/transient", "run/systemd/system")
STAMP_FOLDER = "var/lib/systemd/timers"


class UnitFolders(Protocol):
    """The unit files of a node; names have their ending, such as `garboard-revert.timer`."""

    def text(self, name: str) -> str | None:
        """Return a unit file; None if there is none."""
        ...

    def is_enabled(self, name: str) -> bool: ...

    def enabled(self) -> tuple[str, ...]:
        """Return what starts with the node."""
        ...

    def enable(self, name: str, wanted_by: Sequence[str]) -> None: ...

    def disable(self, name: str) -> None: ...

    def fired_at_s(self, name: str) -> float | None:
        """Return when a timer fired last, or was first started; None if it never was."""
        ...

    def note_fired(self, name: str) -> None:
        """Note that a timer fires now, or is first started."""
        ...


@dataclass(frozen=True, slots=True)
class NodeUnitFolders:
    """Reads what the node wrote into its layer over the machine's folders; `root` is its own root, where it writes.

    The machine's own units show through in the node's /etc, and are none of its business.
    """

    files: LabFilesystem
    upper: Path
    root: Path
    clock_s: Callable[[], float] = time.time

    def text(self, name: str) -> str | None:
        for folder in (self.upper / UNIT_FOLDER, *(self.root / each for each in TRANSIENT_FOLDERS)):
            path = folder / name
            if path.is_file() and not path.is_symlink():  # a link would lead to a file of the machine
                data = self.files.read_if_there(path)
                return None if data is None else data.decode("utf-8", "replace")
        return None

    def is_enabled(self, name: str) -> bool:
        return name in self.enabled()

    def enabled(self) -> tuple[str, ...]:
        return tuple(sorted({link.name for link in self._links()}))

    def enable(self, name: str, wanted_by: Sequence[str]) -> None:
        for target in wanted_by:
            folder = self.root / UNIT_FOLDER / f"{target}.wants"
            self.files.make_folder(folder, mode=0o755)
            if not (folder / name).is_symlink():
                self.files.make_link(folder / name, f"/{UNIT_FOLDER}/{name}")

    def disable(self, name: str) -> None:
        for link in tuple(self._links()):
            if link.name == name:
                self.files.remove_file(self.root / UNIT_FOLDER / link.parent.name / name)

    def fired_at_s(self, name: str) -> float | None:
        data = self.files.read_if_there(self._stamp(name))
        return None if data is None else float(data)

    def note_fired(self, name: str) -> None:
        self.files.make_folder(self._stamp(name).parent, mode=0o755)
        self.files.write_file(self._stamp(name), f"{self.clock_s()}\n".encode(), mode=0o644)

    def _stamp(self, name: str) -> Path:
        return self.root / STAMP_FOLDER / f"stamp-{name}"

    def _links(self) -> Iterator[Path]:
        folder = self.upper / UNIT_FOLDER
        for wants in folder.glob("*.wants") if folder.is_dir() else ():
            yield from (each for each in wants.iterdir() if each.is_symlink())
