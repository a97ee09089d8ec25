"""Which snapshots there are, and whether each can be used. One appears by a rename, so one that is there is whole.

While a snapshot is being made, a folder beside the others is reserved for it, with the process that makes it.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from garboard.documents import Json
from garboard.errors import BadUsage, GarboardError, InvalidValue
from garboard.lab.disk import bytes_text, own_bytes
from garboard.lab.layout import SnapshotFiles, snapshots_folder
from garboard.lab.machine import LabMachine
from garboard.lab.record import ProcessId, Records
from garboard.lab.snapshots.manifest import SnapshotManifest, changed_programs, take_inventory

INCOMING = ".incoming-"
OWNER = ".owner.json"


def check_snapshot_name(name: str) -> None:
    """Refuse what cannot be the name of a snapshot: it is a folder's name."""
    if not re.fullmatch(r"[a-z0-9]([a-z0-9.-]{0,62}[a-z0-9])?", name):
        raise InvalidValue(
            f"{name!r} is no name for a snapshot",
            hint="use up to 64 lower-case letters, digits, hyphens and dots, a letter or digit first and last",
        )


@dataclass(frozen=True, slots=True)
class Snapshots:
    """The snapshots of all labs under one home."""

    machine: LabMachine
    home: Path

    @property
    def folder(self) -> Path:
        return snapshots_folder(self.home)

    def files(self, name: str) -> SnapshotFiles:
        return SnapshotFiles(self.home, name)

    def names(self) -> list[str]:
        if not self.folder.is_dir():
            return []
        return sorted(each.name for each in self.folder.iterdir() if each.is_dir() and not each.name.startswith("."))

    def read(self, name: str) -> SnapshotManifest:
        """Return what is written down about a snapshot; a `ValueError` says why that cannot be used."""
        data = self.machine.read_if_there(self.files(name).manifest)
        if data is None:
            raise ValueError(f"it has no {self.files(name).manifest.name}, so `garboard lab snapshot` did not make it")
        return SnapshotManifest.parse(data)

    def problem(self, name: str) -> str | None:
        """Say why no lab can be started from a snapshot that is there; None if one can."""
        try:
            manifest = self.read(name)
        except ValueError as error:
            return str(error)
        if changed := changed_programs(manifest.programs):
            return f"it was made with other programs: {changed[0]} has changed since or is gone"
        if take_inventory(self.files(name).folder, but=self.files(name).manifest.name) != manifest.inventory:
            return "it is damaged: its files are not those that were kept"
        return None

    def require(self, name: str) -> SnapshotManifest:
        """Return the manifest of a snapshot that can be used; otherwise the error says why not."""
        check_snapshot_name(name)
        known = self.names()
        if name not in known:
            raise InvalidValue(
                f"there is no snapshot {name!r} (snapshots here: {', '.join(known) or 'none'})",
                hint=f"make one with `garboard lab snapshot LAB --as {name}`",
            )
        problem = self.problem(name)
        if problem is not None:
            raise GarboardError(
                f"snapshot {name} in {self.files(name).folder} cannot be used: {problem}",
                hint=f"remove it with `garboard lab snapshot --remove {name}` and make it again",
                error_class="snapshot-unusable",
            )
        return self.read(name)

    @contextmanager
    def locked(self, *, shared: bool = False) -> Iterator[None]:
        """Keep snapshots from being added or removed; with `shared`, others may read beside us."""
        self.machine.make_folder(self.folder)
        with self.machine.locked(self.folder / ".lock", shared=shared):
            yield

    def reserve(self, name: str) -> SnapshotFiles:
        """Make the folder in which a snapshot is put together; the name must be free and nobody else at work on it."""
        check_snapshot_name(name)
        incoming = self.files(f"{INCOMING}{name}")
        with self.locked():
            if name in self.names():
                raise BadUsage(
                    f"snapshot {name} exists already",
                    hint=f"remove it with `garboard lab snapshot --remove {name}`, or choose another name",
                    error_class="snapshot-exists",
                )
            if incoming.folder.is_dir():
                self._clear(incoming)
            self.machine.make_folder(incoming.folder, mode=0o700)
            owner = Records(self.machine, self.home).processes.myself()
            self.machine.write_in_place(incoming.folder / OWNER, json.dumps(owner.as_json()).encode())
        return incoming

    def _clear(self, incoming: SnapshotFiles) -> None:
        if self.is_being_made(incoming):
            raise GarboardError(
                f"snapshot {incoming.name.removeprefix(INCOMING)} is being made by another process",
                hint="wait for it, or choose another name",
                error_class="snapshot-busy",
            )
        self.machine.remove_tree(incoming.folder)

    def is_being_made(self, incoming: SnapshotFiles) -> bool:
        """Say whether the process that reserved a folder is alive, or may be, where we cannot see it."""
        data = self.machine.read_if_there(incoming.folder / OWNER)
        owner = ProcessId.from_json(json.loads(data)) if data else None
        processes = Records(self.machine, self.home).processes
        return owner is not None and (processes.is_alive(owner) or processes.is_foreign(owner))

    def publish(self, incoming: SnapshotFiles, manifest: SnapshotManifest) -> None:
        """Make what was put together a snapshot."""
        self.machine.remove_file(incoming.folder / OWNER)
        self.machine.write_file(incoming.manifest, manifest.as_bytes(), mode=0o600)
        with self.locked():
            self.machine.rename(incoming.folder, self.files(incoming.name.removeprefix(INCOMING)).folder)

    def abandon(self, incoming: SnapshotFiles) -> None:
        """Remove what was put together so far; once it is a snapshot there is nothing to remove."""
        self.machine.remove_tree(incoming.folder, ignore_errors=True)

    def left_over(self) -> list[SnapshotFiles]:
        """The folders that were reserved by processes which have died since."""
        if not self.folder.is_dir():
            return []
        found = (self.files(each.name) for each in sorted(self.folder.glob(f"{INCOMING}*")))
        return [each for each in found if not self.is_being_made(each)]

    def remove(self, name: str) -> None:
        """Remove a snapshot; labs that were started from it keep what they have by their own links and copies."""
        check_snapshot_name(name)
        with self.locked():
            if name not in self.names():
                raise InvalidValue(
                    f"there is no snapshot {name!r} (snapshots here: {', '.join(self.names()) or 'none'})",
                    hint="list them with `garboard lab snapshots`",
                )
            self.machine.remove_tree(self.files(name).folder)


@dataclass(frozen=True, slots=True)
class SnapshotSummary:
    """A snapshot in a line; `problem` says why no lab can be started from it."""

    name: str
    size_bytes: int
    problem: str | None = None
    version: str = "-"
    by: str = "-"
    nodes: int = 0
    made_at: str = "-"

    @property
    def state(self) -> str:
        return "unusable" if self.problem else "ok"

    @property
    def size_text(self) -> str:
        return bytes_text(self.size_bytes)

    def as_json(self) -> Json:
        return {
            "name": self.name, "state": self.state, "problem": self.problem, "kubernetesVersion": self.version,
            "by": self.by, "nodes": self.nodes, "sizeBytes": self.size_bytes, "madeAt": self.made_at,
        }  # fmt: skip


def summarize_snapshots(snapshots: Snapshots) -> list[SnapshotSummary]:
    """Describe every snapshot, also those that cannot be used."""
    return [_summary(snapshots, name) for name in snapshots.names()]


def _summary(snapshots: Snapshots, name: str) -> SnapshotSummary:
    size, problem = own_bytes(snapshots.files(name).folder), snapshots.problem(name)
    try:
        manifest = snapshots.read(name)
    except ValueError:
        return SnapshotSummary(name, size, problem)
    lab = manifest.lab
    return SnapshotSummary(name, size, problem, str(lab.version), lab.bootstrap.value, len(lab.nodes), manifest.made_at)
