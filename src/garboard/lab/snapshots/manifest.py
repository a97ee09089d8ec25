"""What is written down about a snapshot, so that one that is damaged or out of date is refused before it is used."""

import hashlib
import json
import os
import stat
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from garboard.errors import GarboardError
from garboard.lab.disk import walk
from garboard.lab.topology import Lab

# To be raised when a lab could no longer be started from the files of an earlier release.
FORMAT = 1


@dataclass(frozen=True, slots=True)
class ProgramFile:
    """A program of the lab. Nodes have links to it, so a snapshot is good only as long as it is the same one."""

    path: str
    size: int
    changed_ns: int

    @classmethod
    def at(cls, path: Path) -> Self | None:
        """Describe the program at `path`; None if there is none."""
        try:
            found = path.stat()
        except OSError:
            return None
        return cls(str(path), found.st_size, found.st_mtime_ns)


@dataclass(frozen=True, slots=True)
class Inventory:
    """A folder in short: how many entries it has, and a digest of their names, kinds, modes, sizes and times."""

    entries: int
    digest: str


@dataclass(frozen=True, slots=True)
class SnapshotManifest:
    lab: Lab
    made_at: str
    is_cgroup_v1: bool
    programs: tuple[ProgramFile, ...]
    inventory: Inventory
    format: int = FORMAT

    def as_bytes(self) -> bytes:
        return json.dumps({**asdict(self), "lab": self.lab.as_json()}, indent=2).encode()

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Read a manifest; a `ValueError` says why it is none."""
        try:
            document = json.loads(data)
        except ValueError as error:
            raise ValueError(f"its manifest is no JSON: {error}") from error
        try:
            if document["format"] != FORMAT:
                raise ValueError(f"it has format {document['format']}, this release reads {FORMAT}")
            return cls(
                lab=Lab.from_json(document["lab"]),
                made_at=str(document["made_at"]),
                is_cgroup_v1=bool(document["is_cgroup_v1"]),
                programs=tuple(ProgramFile(**each) for each in document["programs"]),
                inventory=Inventory(**document["inventory"]),
            )
        except (KeyError, TypeError, AssertionError, GarboardError) as error:
            raise ValueError(f"its manifest makes no sense: {error!r}") from error


def changed_programs(programs: Iterable[ProgramFile]) -> list[str]:
    """Return the paths of programs that are gone, or no longer the ones that were described."""
    return [each.path for each in programs if ProgramFile.at(Path(each.path)) != each]


def take_inventory(folder: Path, *, but: str) -> Inventory:
    """Describe everything below `folder` except its entry `but`."""
    lines = sorted(_describe(path, found, folder) for path, found in walk(folder) if path != folder / but)
    return Inventory(len(lines), hashlib.sha256("\n".join(lines).encode()).hexdigest())


def _describe(path: Path, found: os.stat_result, folder: Path) -> str:
    """Write an entry as a line, without the times of folders and links, which say nothing about their content."""
    more = ""
    if stat.S_ISREG(found.st_mode):
        more = f"{found.st_size} {found.st_mtime_ns}"
    elif stat.S_ISLNK(found.st_mode):
        more = str(path.readlink())
    return f"{path.relative_to(folder)} {found.st_mode:o} {found.st_uid}:{found.st_gid} {more}"
