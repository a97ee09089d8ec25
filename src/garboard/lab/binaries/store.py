"""Where programs are: one folder per program and version in the cache, filled from whichever source can.

A folder appears in the cache by a rename, so a folder that is there is whole.
"""

import os
import shutil
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import groupby
from pathlib import Path

from garboard.errors import GarboardError
from garboard.lab.binaries.build import Builder, Report
from garboard.lab.binaries.download import BadChecksum, Downloader, machine_architecture
from garboard.lab.binaries.pins import Pins, Wanted, read_pins
from garboard.lab.machine import Machine


class Source(StrEnum):
    """Where a program may come from when neither the given folder nor the cache has it."""

    AUTO = "auto"
    DOWNLOAD = "download"
    BUILD = "build"


@dataclass(frozen=True, slots=True)
class Found:
    """A program on this machine: its file, or the folder of its files."""

    wanted: Wanted
    path: Path
    origin: str


def default_cache() -> Path:
    """Return the folder of the programs: garboard/binaries under XDG_CACHE_HOME or ~/.cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "garboard" / "binaries"


def _silent(_line: str) -> None:
    """Report nothing."""


@dataclass(frozen=True, slots=True)
class Binaries:
    """Finds programs and makes those that are missing."""

    machine: Machine
    cache: Path = field(default_factory=default_cache)
    given: Path | None = None
    source: Source = Source.AUTO
    build_cache: Path | None = None
    keep_build_cache: bool = False
    report: Report = _silent
    pins: Pins = field(default_factory=read_pins)

    def locate(self, program: str, version: str | None = None) -> Path:
        """Return the path of `program` at `version` (by default the one of the default Kubernetes), made if need be."""
        return self.get([self.pins.wanted(program, version)])[0].path

    def locate_for(self, program: str, kubernetes: str) -> Path:
        """Return the path of `program` at the version that belongs to the Kubernetes release `kubernetes`."""
        return self.get([self.pins.wanted(program, kubernetes=kubernetes)])[0].path

    def get(self, wanted: Iterable[Wanted]) -> tuple[Found, ...]:
        """Return where each program is, after making what is missing."""
        asked = tuple(dict.fromkeys(wanted))
        missing = [each for each in asked if self.find(each) is None]
        if missing:
            self.cache.mkdir(parents=True, exist_ok=True)
            self._make(missing)
        found = [self.find(each) for each in asked]
        assert all(found), "what could not be made has raised"
        return tuple(each for each in found if each)

    def find(self, wanted: Wanted) -> Found | None:
        """Return where `wanted` is in the given folder or the cache, or None; nothing is made."""
        if self.given is not None:
            for folder in (self.given / wanted.program.name / wanted.version, self.given / wanted.version, self.given):
                if all(os.access(folder / name, os.X_OK) for name in wanted.program.files):
                    return Found(wanted, _path_in(folder, wanted), "given")
        folder = self._folder(wanted)
        return Found(wanted, _path_in(folder, wanted), "cache") if folder.is_dir() else None

    def _folder(self, wanted: Wanted) -> Path:
        return self.cache / wanted.program.name / wanted.version

    def _make(self, missing: Sequence[Wanted]) -> None:
        left = list(missing) if self.source is Source.BUILD else self._download(missing)
        if self.source is Source.DOWNLOAD and left:
            raise GarboardError(
                f"no release download for {', '.join(map(str, left))}",
                hint="use --source build, or pass --from with a folder that has them",
                error_class="no-release",
            )
        if left:
            self._build(left)

    def _download(self, missing: Sequence[Wanted]) -> list[Wanted]:
        """Download what has a release; return what is left, all of it once the first request finds nobody there."""
        downloader = Downloader(self.machine, machine_architecture())
        left = [each for each in missing if each.program.release is None]
        for position, each in enumerate(rest := [each for each in missing if each.program.release is not None]):
            folder = self._scratch(each)
            try:
                self.report(f"downloading {each}")
                downloader.download(each, folder)
            except BadChecksum:
                raise
            except GarboardError as error:
                if self.source is Source.DOWNLOAD:
                    raise
                self.report(f"releases cannot be reached ({error.message}); building from source instead")
                return [*rest[position:], *left]
            self._keep(folder, each)
        return left

    def _build(self, missing: Sequence[Wanted]) -> None:
        workspace = self.cache / ".build"
        workspace.mkdir(exist_ok=True)
        builder = Builder(self.machine, workspace, self.build_cache or workspace / "gocache", self.report)
        in_use = workspace / "gocache.lock"
        with self.machine.locked(in_use, shared=True):
            for key, group in groupby(sorted(missing, key=_module_and_version), key=_module_and_version):
                # Two that want the same programs build them once; the second finds them made.
                with self.machine.locked(workspace / f"{'@'.join(key).replace('/', '_')}.lock"):
                    self._build_group(builder, [each for each in group if self.find(each) is None])
        if not self.keep_build_cache:
            with self.machine.locked(in_use, wait=False) as is_ours_alone:
                if is_ours_alone:
                    shutil.rmtree(workspace / "gocache", ignore_errors=True)

    def _build_group(self, builder: Builder, group: Sequence[Wanted]) -> None:
        if group:
            for wanted, folder in builder.build(group).items():
                self._keep(folder, wanted)
            builder.tidy(group[0])

    def _scratch(self, wanted: Wanted) -> Path:
        return self.cache / ".incoming" / f"{wanted.program.name}-{wanted.version}-{uuid.uuid4().hex[:8]}"

    def _keep(self, folder: Path, wanted: Wanted) -> None:
        target = self._folder(wanted)
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists():  # someone else was faster
            shutil.rmtree(folder)
        else:
            folder.rename(target)
        self.report(f"{wanted} is ready")


def _module_and_version(wanted: Wanted) -> tuple[str, str]:
    return (wanted.program.module.path if wanted.program.module else "", wanted.version)


def _path_in(folder: Path, wanted: Wanted) -> Path:
    return folder / wanted.file if wanted.file else folder
