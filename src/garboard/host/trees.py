"""Whole folders and single entries of them: copied, linked, renamed, removed; and the kernel's own files.

Nothing here is fsynced: it is for what need not outlive a power cut, and for /proc and /sys. Paths are taken as they
are, without regard to `garboard.host.root`.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from garboard.errors import GarboardError
from garboard.lazy import lazy_module

if TYPE_CHECKING:
    import shutil
else:
    shutil = lazy_module("shutil")  # brings compression with it


@contextmanager
def _translated(task: str, error_class: str = "unwritable") -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise GarboardError(
            f"cannot {task}: {error.strerror or error}",
            hint="check the path, its permissions and the free space",
            error_class=error_class,
        ) from error


def read_kernel_file(path: Path) -> str:
    """Return the text of a file of /proc or /sys.

    It is read in small pieces: the kernel may make a buffer as large as the read, and fail where that is too large.
    """
    with _translated(f"read {path}", error_class="unreadable"):
        return path.read_text("utf-8", "replace")


def write_in_place(path: Path, data: bytes, *, mode: int | None = None) -> None:
    """Write into the file itself, as files of /proc and /sys need it; a new one gets `mode`."""
    with _translated(f"write {path}"):
        path.write_bytes(data)
        if mode is not None:
            path.chmod(mode)


@contextmanager
def writing(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for content that is too large to be held at once."""
    with _translated(f"write {path}"), path.open("wb") as handle:
        yield handle


def make_link(path: Path, target: str | Path) -> None:
    """Make `path` a symbolic link to `target`."""
    with _translated(f"make the link {path}"):
        path.symlink_to(target)


def copy_file(source: Path, target: Path, *, mode: int | None = None) -> None:
    """Copy a file with its times and its mode, or with another `mode`."""
    with _translated(f"copy {source} to {target}"):
        shutil.copy2(source, target)
        if mode is not None:
            target.chmod(mode)


def copy_tree(source: Path, target: Path, *, follows_links: bool) -> None:
    """Copy a folder with all below it into `target`, which may be there; links are copied as such or followed."""
    with _translated(f"copy {source} to {target}"):
        shutil.copytree(source, target, symlinks=not follows_links, dirs_exist_ok=True)


def link_tree(source: Path, target: Path, *, copied: str) -> None:
    """Give `target` the same folders and links; files are shared by hard links, those that end with `copied` copied."""
    with _translated(f"link {source} to {target}"):
        _link_folder(source, target, copied)


def _link_folder(source: Path, target: Path, copied: str) -> None:
    target.mkdir(parents=True, exist_ok=True)
    shutil.copystat(source, target)
    for entry in source.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            _link_folder(entry, target / entry.name, copied)
        else:
            _link_entry(entry, target / entry.name, copied)


def _link_entry(source: Path, target: Path, copied: str) -> None:
    if source.is_symlink():
        target.symlink_to(source.readlink())
    elif source.name.endswith(copied):
        shutil.copy2(source, target)
    else:
        target.hardlink_to(source)


def copy_attributes(source: Path, target: Path) -> None:
    """Give `target` the mode, times, extended attributes and owner of `source`."""
    with _translated(f"copy the attributes of {source} to {target}"):
        shutil.copystat(source, target)
        found = source.stat()
        os.chown(target, found.st_uid, found.st_gid)


def set_attribute(path: Path, name: str, value: bytes) -> None:
    """Set an extended attribute."""
    with _translated(f"set {name} of {path}"):
        os.setxattr(path, name, value)


def change_mode(path: Path, mode: int) -> None:
    """Change the permissions of a file or a folder."""
    with _translated(f"change the mode of {path}"):
        path.chmod(mode)


def rename(path: Path, target: Path) -> None:
    """Rename a file or a folder within one file system."""
    with _translated(f"rename {path} to {target}"):
        path.rename(target)


def remove_tree(path: Path, *, ignore_errors: bool = False) -> None:
    """Remove a folder with all below it; with `ignore_errors`, as much of it as can be."""
    with _translated(f"remove {path}"):
        shutil.rmtree(path, ignore_errors=ignore_errors)


def remove_group(path: Path) -> bool:
    """Remove a control group, or an empty folder; say whether it is gone, which one in use is not."""
    try:
        path.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def free_bytes(path: Path) -> int:
    """Return how much room there is on the disk of `path`."""
    with _translated(f"measure the free space of {path}"):
        return shutil.disk_usage(path).free
