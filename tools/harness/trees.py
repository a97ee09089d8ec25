"""What is on a machine: every path with its kind, mode, owner and content."""

import hashlib
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Entry:
    """One path; `content` is a digest, or where a link leads."""

    kind: int
    mode: int
    uid: int
    gid: int
    content: str
    inode: int = 0

    def is_like(self, other: "Entry | None") -> bool:
        """Whether all is the same but which file on the disk it is."""
        return other is not None and (self.kind, self.mode, self.uid, self.gid, self.content) == (
            other.kind, other.mode, other.uid, other.gid, other.content,
        )  # fmt: skip

    def is_same_file(self, other: "Entry | None") -> bool:
        """Whether it is the same file on the disk with the same content, whatever its owner and mode."""
        return other is not None and (self.inode, self.content) == (other.inode, other.content)


Tree = dict[str, Entry]


def read_tree(roots: Iterable[str], *, without: Iterable[str] = ()) -> Tree:
    """Return everything below the roots, and the roots themselves, but for the folders that are left out."""
    left_out = set(without)
    found: Tree = {}
    for root in roots:
        if Path(root).exists():
            found[root] = entry_of(Path(root))
        for folder, folders, files in os.walk(root):
            folders[:] = [name for name in folders if str(Path(folder, name)) not in left_out]
            for name in (*folders, *files):
                found[str(Path(folder, name))] = entry_of(Path(folder, name))
    return found


def entry_of(path: Path) -> Entry:
    """Return one path as it is."""
    found = path.lstat()
    content = ""
    if stat.S_ISLNK(found.st_mode):
        content = str(path.readlink())
    elif stat.S_ISREG(found.st_mode):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
    kind = stat.S_IFMT(found.st_mode)
    return Entry(kind, stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid, content, found.st_ino)


def differences(before: Tree, after: Tree) -> list[str]:
    """Say in words in what two trees differ."""
    lines = [f"{path} is new" for path in sorted(after.keys() - before.keys())]
    lines += [f"{path} has gone" for path in sorted(before.keys() - after.keys())]
    for path in sorted(before.keys() & after.keys()):
        if not before[path].is_like(after[path]):
            lines.append(f"{path} was {before[path]} and is {after[path]}")
    return lines
