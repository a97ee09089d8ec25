"""What labs have left on this machine: found with its size, and removed. What a lab that runs uses is never touched.

Labs have links to the images and snapshots that they were made of, or copies, so both may go while such a lab runs.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from garboard.documents import Json
from garboard.errors import BadUsage
from garboard.lab.binaries import BUILD_FOLDERS, Binaries, go_modules_folder
from garboard.lab.disk import bytes_text, own_bytes
from garboard.lab.imageset import IMAGE_PROGRAMS, release_key
from garboard.lab.labs import Labs
from garboard.lab.layout import failed_folder, images_folder
from garboard.lab.removal import remove, restore_limits
from garboard.lab.snapshots.store import Snapshots

_FAILED = "logs of labs that did not come up"


class LeftoverKind(StrEnum):
    LAB = "lab"
    SNAPSHOT = "snapshot"
    IMAGES = "images"
    LOGS = "logs"
    PROGRAMS = "programs"
    BUILD = "build"


@dataclass(frozen=True, slots=True)
class Leftover:
    """Something that can go, why, and what that frees."""

    kind: LeftoverKind
    name: str
    why: str
    path: Path
    size_bytes: int

    def __str__(self) -> str:
        return f"{self.kind} {self.name} ({bytes_text(self.size_bytes)}): {self.why}"

    def as_json(self) -> Json:
        return {"kind": self.kind.value, "name": self.name, "why": self.why, "sizeBytes": self.size_bytes}


@dataclass(frozen=True, slots=True)
class PruneChoice:
    """What else is to go beside that which is of no use any more."""

    images: bool = False
    snapshots: bool = False
    programs: bool = False
    logs: bool = False
    dry_run: bool = False


def prune(labs: Labs, choice: PruneChoice) -> list[Leftover]:
    """Remove what is left of labs, snapshots, images and builds, and return it; a dry run only returns it."""
    found = _prune_home(labs, choice) if labs.home.is_dir() else []
    return found + (_prune_programs(labs, choice) if labs.binaries.cache.is_dir() else [])


def _prune_home(labs: Labs, choice: PruneChoice) -> list[Leftover]:
    snapshots = Snapshots(labs.machine, labs.home)
    with labs.machine.locked(labs.home / ".lock"):
        found = _remove_each(list(_labs(labs)), choice, lambda each: remove(labs, each.name))
        if not choice.dry_run:
            restore_limits(labs)
    with snapshots.locked():
        found += _remove_each(list(_snapshots(snapshots, choice)), choice, _tree_remover(labs))
    with labs.images_locked() as is_free:
        if is_free:
            found += _remove_each(list(_images(labs, choice)), choice, _tree_remover(labs))
        else:
            labs.report("images are left alone: a lab is being made of them")
    if choice.logs and (logs := failed_folder(labs.home)).is_dir():
        found += _remove_each([_leftover(LeftoverKind.LOGS, logs, _FAILED)], choice, _tree_remover(labs))
    return found


def _prune_programs(labs: Labs, choice: PruneChoice) -> list[Leftover]:
    with labs.binaries.idle() as is_idle:
        if not is_idle:
            labs.report("programs and builds are left alone: programs are being made")
            return []
        found = [*_builds(labs.binaries.cache)]
        if choice.programs and _uses_programs(labs):
            labs.report("programs are left alone: labs have links to them")
        elif choice.programs:
            found += _programs(labs.binaries)
        return _remove_each(found, choice, _tree_remover(labs))


def kept(labs: Labs) -> dict[str, int]:
    """Return what labs still have on disk, in bytes by kind; modules are told too, but are Go's own to remove."""
    cache, snapshots = labs.binaries.cache, Snapshots(labs.machine, labs.home).folder
    folders = {"labs": [labs.home / "labs"], "snapshots": [snapshots], "images": [images_folder(labs.home)]}
    folders |= {"logs": [failed_folder(labs.home)], "programs": _program_folders(cache)}
    folders |= {"builds": [cache / name for name in BUILD_FOLDERS]}
    folders |= {folder.name: [folder] for folder in labs.binaries.folders_beside()}
    folders |= {"Go modules": [go_modules_folder()]}
    there = {name: [each for each in several if each.is_dir()] for name, several in folders.items()}
    return {name: sum(map(own_bytes, several)) for name, several in there.items() if several}


def _remove_each(
    found: list[Leftover], choice: PruneChoice, remove_one: Callable[[Leftover], object]
) -> list[Leftover]:
    for each in found if not choice.dry_run else ():
        remove_one(each)
    return found


def _tree_remover(labs: Labs) -> Callable[[Leftover], object]:
    return lambda each: labs.machine.remove_tree(each.path)


def _labs(labs: Labs) -> Iterator[Leftover]:
    living = set(_living(labs))
    for name in labs.records.names():
        if name not in living:
            yield _leftover(LeftoverKind.LAB, labs.files(name).folder, "nobody runs it any more")


def _uses_programs(labs: Labs) -> bool:
    """Say whether a lab is there, or is being made, whose nodes have links to programs."""
    if not labs.home.is_dir():
        return False
    with labs.images_locked() as is_free:
        return not is_free or any(_living(labs))


def _living(labs: Labs) -> Iterator[str]:
    for name in labs.records.names():
        record = labs.records.read(name)
        if record is not None and not labs.records.is_left_over(record):
            yield name


def _snapshots(snapshots: Snapshots, choice: PruneChoice) -> Iterator[Leftover]:
    for each in snapshots.left_over():
        yield _leftover(LeftoverKind.SNAPSHOT, each.folder, "the process that made it died on the way")
    for name in snapshots.names():
        problem = snapshots.problem(name)
        if problem or choice.snapshots:
            why = problem or "every snapshot was asked for"
            yield _leftover(LeftoverKind.SNAPSHOT, snapshots.files(name).folder, why)


def _images(labs: Labs, choice: PruneChoice) -> Iterator[Leftover]:
    store = images_folder(labs.home)
    for folder in sorted(each for each in store.glob("*") if each.is_dir()):
        if folder.name.startswith("."):
            yield _leftover(LeftoverKind.IMAGES, folder, "its import did not end")
        elif choice.images:
            yield _leftover(LeftoverKind.IMAGES, folder, "all images were asked for")
        elif _is_out_of_date(labs, folder.name):
            yield _leftover(LeftoverKind.IMAGES, folder, "made of programs that are no longer here")


def _builds(cache: Path) -> Iterator[Leftover]:
    """Yield what builds and downloads have left that were killed, or were to keep it for the next build."""
    for folder in (each for name in BUILD_FOLDERS for each in sorted((cache / name).glob("*")) if each.is_dir()):
        yield _leftover(LeftoverKind.BUILD, folder, "nothing is being built or downloaded")


def _programs(binaries: Binaries) -> Iterator[Leftover]:
    for folder in (*_program_folders(binaries.cache), *binaries.folders_beside()):
        yield _leftover(LeftoverKind.PROGRAMS, folder, "all programs were asked for")


def _program_folders(cache: Path) -> list[Path]:
    return sorted(each for each in cache.glob("[!.]*") if each.is_dir())


def _is_out_of_date(labs: Labs, key: str) -> bool:
    """Say whether a set of images would be made anew under another name; without its programs, it would be."""
    versions = key.rpartition("-")[0].split("+")
    pins = labs.binaries.pins
    try:
        wanted = [pins.wanted(name, kubernetes=version) for version in versions for name in IMAGE_PROGRAMS]
    except BadUsage:  # a release that the lab no longer knows
        return True
    if any(labs.binaries.find(each) is None for each in wanted):
        return True
    return release_key(labs.binaries, labs.machine, versions) != key


def _leftover(kind: LeftoverKind, folder: Path, why: str) -> Leftover:
    return Leftover(kind, folder.name, why, folder, own_bytes(folder))
