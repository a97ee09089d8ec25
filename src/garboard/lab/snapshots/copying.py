"""The files of a node, from a lab into a snapshot and back: what cannot change is linked, the rest is copied."""

from collections.abc import Collection, Iterator
from pathlib import Path

from garboard.errors import GarboardError
from garboard.lab.imageset import STORE_DATABASES
from garboard.lab.layout import NodeFiles
from garboard.lab.machine import LabMachine
from garboard.lab.program import GARBOARD_FOLDER

# Images: containerd writes a file of their content once and never again.
LINKED = "root/var/lib/containerd"
# Scratch folders of mounts, sockets and logs of processes that have ended, and garboard: a lab gets the present one.
LEFT_OUT = ("work", "root/var/log", "root/var/lib/garboard-lab", f"upper/{GARBOARD_FOLDER}", "upper/usr/bin/garboard")


def copy_node(machine: LabMachine, source: NodeFiles, target: NodeFiles) -> None:
    """Copy the files of a node that does not run."""
    machine.make_folder(target.folder)
    try:
        # etcd reserves 64 MB for each of its logs, nearly all of it zeros.
        copy: list[str | Path] = ["cp", "--archive", "--parents", "--reflink=auto", "--sparse=always", "--"]
        entries = sorted(entries_beside(source.folder, {LINKED, *LEFT_OUT}))
        machine.run([*copy, *entries, target.folder], cwd=source.folder)
        _link_images(machine, source.folder / LINKED, target.folder / LINKED)
    except GarboardError as error:
        raise GarboardError(
            f"cannot copy node {source.folder.name} to {target.folder}: {error.message}",
            hint="check the free space; `garboard lab prune` says what labs, images and snapshots use",
            error_class="snapshot-copy",
        ) from error


def entries_beside(folder: Path, apart: Collection[str], below: str = "") -> Iterator[str]:
    """Name the fewest entries below `folder` that are everything but those in `apart`."""
    for entry in (folder / below).iterdir():
        name = f"{below}{entry.name}"
        if name in apart:
            continue
        if any(each.startswith(f"{name}/") for each in apart):
            yield from entries_beside(folder, apart, f"{name}/")
        else:
            yield name


def _link_images(machine: LabMachine, source: Path, target: Path) -> None:
    machine.make_folder(target.parent)
    machine.run(["cp", "--archive", "--link", "--", source, target])
    # The databases of containerd and its snapshotter; what has such a name in an image lies deeper.
    for database in sorted(target.glob(f"*/*{STORE_DATABASES}")):
        machine.remove_file(database)
        machine.copy_file(source / database.relative_to(target), database)
