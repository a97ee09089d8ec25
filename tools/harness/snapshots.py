"""Clusters for tests and benchmarks, from snapshots that are kept between runs.

A snapshot is taken right after its cluster was made, before any test has touched that, and its name has a digest of
everything that made it: another program, option or line of the lab's code is another snapshot, and the old one goes.
"""

import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import garboard
from garboard.host import Machine
from garboard.lab.binaries import CLUSTER_PROGRAMS, Binaries
from garboard.lab.layout import lab_home, snapshots_folder
from garboard.lab.preflight import PROGRAMS
from garboard.lab.snapshots.manifest import ProgramFile
from garboard.lab.snapshots.store import Snapshots
from garboard.model import DEFAULT_VERSION
from tools.harness.lab import LabUnderTest
from tools.harness.lab import garboard as run_garboard

SOURCE = Path(garboard.__file__).parent
# What decides how a cluster of kubeadm's comes out: the lab, and all that it imports. If garboard makes the cluster,
# all of its code does.
LAB_SOURCES = (
    "cli/lab", "documents", "errors.py", "host", "lab", "lazy.py", "model", "net", "retry.py", "values.py",
)  # fmt: skip
PREFIX = "test-"


@dataclass(frozen=True)
class ClusterSnapshots:
    """Starts labs from snapshots; those made before `fresh_since` are made anew."""

    fresh_since: datetime | None = None

    def up(self, lab: LabUnderTest, *arguments: str) -> bool:
        """Have `lab` run as `lab up` with `arguments` makes it; say whether it came from a snapshot that was there.

        If not, it is the lab of which the snapshot has just been taken.
        """
        slot = slot_of(arguments)
        name = f"{slot}-{digest_of(arguments)}"
        lock = snapshots_folder(lab_home()) / f".{slot}.lock"
        lock.parent.mkdir(parents=True, exist_ok=True)
        with Machine().locked(lock, shared=True):
            if self._is_usable(name):
                lab.lab("up", "--snapshot", name)
                return True
        with Machine().locked(lock):
            if self._is_usable(name):  # another process was faster
                lab.lab("up", "--snapshot", name)
                return True
            self._make(lab, slot, name, arguments)
            return False

    def _make(self, lab: LabUnderTest, slot: str, name: str, arguments: tuple[str, ...]) -> None:
        for each in self._store.names():
            if each.rpartition("-")[0] == slot:
                run_garboard("lab", "snapshot", "--remove", each)
        lab.lab("up", *arguments)
        lab.lab("snapshot", "--as", name)

    def _is_usable(self, name: str) -> bool:
        if name not in self._store.names() or self._store.problem(name) is not None:
            return False
        made_at = datetime.fromisoformat(self._store.read(name).made_at)
        return self.fresh_since is None or made_at >= self.fresh_since

    @property
    def _store(self) -> Snapshots:
        return Snapshots(Machine(), lab_home())


def cluster_snapshots(*, fresh: bool) -> ClusterSnapshots:
    """Return the snapshots of this run; with `fresh`, each is made anew once."""
    return ClusterSnapshots(datetime.now(UTC).replace(microsecond=0) if fresh else None)


def slot_of(arguments: tuple[str, ...]) -> str:
    """Name the place of a snapshot that the next one of the same arguments takes."""
    words = re.sub(r"[^a-z0-9]+", "-", " ".join(arguments).lower()).strip("-") or "default"
    own = hashlib.sha256(repr(arguments).encode()).hexdigest()[:8]  # words may begin alike, or differ in signs alone
    return f"{PREFIX}{words[:27].strip('-')}-{own}"


def digest_of(arguments: tuple[str, ...]) -> str:
    """Digest everything that decides what `lab up` with `arguments` makes."""
    content = hashlib.sha256()
    for line in _facts(arguments):
        content.update(f"{line}\n".encode())
    return content.hexdigest()[:12]


def _facts(arguments: tuple[str, ...]) -> Iterator[str]:
    yield repr((arguments, str(DEFAULT_VERSION), os.uname().release))
    for path in (Path(each) for each in arguments if each.startswith("/")):
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            yield f"{file} {file.read_bytes()!r}" if file.is_file() else f"{file}"
    binaries = Binaries(Machine())
    versions = {str(DEFAULT_VERSION), *(each for each in arguments if re.fullmatch(r"v\d+\.\d+\.\d+", each))}
    wanted = [
        binaries.pins.wanted(name, kubernetes=version) for version in sorted(versions) for name in CLUSTER_PROGRAMS
    ]
    for program in binaries.get(wanted):
        yield repr(ProgramFile.at(program.path))
    for name in PROGRAMS:
        found = Machine().find_program(name)
        yield repr(ProgramFile.at(found) if found else name)
    for source in _sources(("",) if "garboard" in arguments else LAB_SOURCES):
        yield f"{source.relative_to(SOURCE)} {hashlib.sha256(source.read_bytes()).hexdigest()}"


def _sources(places: tuple[str, ...]) -> Iterator[Path]:
    for place in (SOURCE / each for each in places):
        found = [place] if place.suffix else sorted(place.rglob("*"))
        yield from (path for path in found if path.is_file() and path.suffix != ".pyc")
