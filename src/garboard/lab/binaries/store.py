"""Where programs are: one folder per program and version in the cache, filled by download or build.

A folder appears in the cache by a rename, so a folder that is there is whole.
"""

import os
import uuid
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import groupby
from pathlib import Path

from garboard.errors import GarboardError
from garboard.lab.binaries.build import Builder, Report
from garboard.lab.binaries.download import BadChecksum, Downloader, machine_architecture
from garboard.lab.binaries.pins import Pins, Wanted, read_pins
from garboard.lab.machine import LabMachine

_DEFAULT_FOLDER = ("garboard", "binaries")
_BUILD, _INCOMING = BUILD_FOLDERS = (".build", ".incoming")


class BinarySource(StrEnum):
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
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / Path(*_DEFAULT_FOLDER)


def go_modules_folder() -> Path:
    """Return where Go keeps the source of modules, those of others too: GOMODCACHE, or pkg/mod under GOPATH or ~/go."""
    path = os.environ.get("GOPATH", "").split(":")[0] or Path.home() / "go"
    return Path(os.environ.get("GOMODCACHE") or Path(path) / "pkg" / "mod")


def _silent(_line: str) -> None:
    """Report nothing."""


@dataclass(frozen=True, slots=True)
class Binaries:
    """Finds programs and makes those that are missing."""

    machine: LabMachine
    cache: Path = field(default_factory=default_cache)
    given: Path | None = None
    source: BinarySource = BinarySource.AUTO
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
            with self.in_use():
                is_built = self._make(missing)
            if is_built and not self.keep_build_cache:
                self.drop_build_cache()
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

    @property
    def build_cache_folder(self) -> Path:
        """Where Go keeps what it has compiled."""
        return self.build_cache or self._workspace / "gocache"

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """While the block runs, nobody removes what is being downloaded or built in the cache."""
        self.machine.make_folder(self.cache)
        with self.machine.locked(self._lock, shared=True):
            yield

    @contextmanager
    def idle(self) -> Iterator[bool]:
        """Let nobody download or build while the block runs; it learns whether somebody does so already."""
        with self.machine.locked(self._lock, wait=False) as is_idle:
            yield is_idle

    def drop_build_cache(self) -> None:
        """Remove the private build cache, unless another process builds."""
        with self.idle() as is_idle:
            if is_idle:
                self.machine.remove_tree(self._workspace / "gocache", ignore_errors=True)

    def folders_beside(self) -> list[Path]:
        """Return what tests keep beside the programs: other programs to compare with, and what these answered."""
        if self.cache.parts[-2:] != _DEFAULT_FOLDER:
            return []
        return sorted(each for each in self.cache.parent.glob("*") if each.is_dir() and each != self.cache)

    @property
    def _workspace(self) -> Path:
        return self.cache / _BUILD

    @property
    def _lock(self) -> Path:
        return self.cache / ".lock"

    def _folder(self, wanted: Wanted) -> Path:
        return self.cache / wanted.program.name / wanted.version

    def _make(self, missing: Sequence[Wanted]) -> bool:
        """Download or build what is missing; say whether anything was built."""
        left = list(missing) if self.source is BinarySource.BUILD else self._download(missing)
        if self.source is BinarySource.DOWNLOAD and left:
            raise GarboardError(
                f"no release download for {', '.join(map(str, left))}",
                hint="use --source build, or pass --from with a folder that has them",
                error_class="no-release",
            )
        if left:
            self._build(left)
        return bool(left)

    def _download(self, missing: Sequence[Wanted]) -> list[Wanted]:
        """Download what has a release; return what is left to be built: everything, once a server cannot be reached."""
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
                if self.source is BinarySource.DOWNLOAD:
                    raise
                self.report(f"releases cannot be reached ({error.message}); building from source instead")
                return [*rest[position:], *left]
            self._keep(folder, each)
        return left

    def _build(self, missing: Sequence[Wanted]) -> None:
        workspace = self._workspace
        self.machine.make_folder(workspace)
        builder = Builder(self.machine, workspace, self.build_cache_folder, self.report)
        ordered = sorted(missing, key=_module_and_version)
        groups = [(key, list(group)) for key, group in groupby(ordered, key=_module_and_version)]
        with ThreadPoolExecutor(max_workers=1) as fetching:
            ahead = [fetching.submit(builder.fetch, group) for _, group in groups[1:]]
            try:
                for key, group in groups:
                    # Of two processes that want the same programs, the second waits here and finds them built.
                    with self.machine.locked(workspace / f"{'@'.join(key).replace('/', '_')}.lock"):
                        self._build_group(builder, [each for each in group if self.find(each) is None])
            finally:
                for each in ahead:
                    each.cancel()

    def _build_group(self, builder: Builder, group: Sequence[Wanted]) -> None:
        if group:
            for wanted, folder in builder.build(group).items():
                self._keep(folder, wanted)
            builder.tidy(group[0])

    def _scratch(self, wanted: Wanted) -> Path:
        return self.cache / _INCOMING / f"{wanted.program.name}-{wanted.version}-{uuid.uuid4().hex[:8]}"

    def _keep(self, folder: Path, wanted: Wanted) -> None:
        target = self._folder(wanted)
        self.machine.make_folder(target.parent)
        if target.exists():  # another process was faster
            self.machine.remove_tree(folder)
        else:
            self.machine.rename(folder, target)
        self.report(f"{wanted} is ready")


def _module_and_version(wanted: Wanted) -> tuple[str, str]:
    return (wanted.program.module.path if wanted.program.module else "", wanted.version)


def _path_in(folder: Path, wanted: Wanted) -> Path:
    return folder / wanted.file if wanted.file else folder
