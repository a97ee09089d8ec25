"""The root that paths are looked up from: `/`, or the folder that `--rootfs` names.

kubeadm changes its root directory for good, which a program that still has to load parts of itself cannot do. Here
every path that a user or a configuration names is led below that folder instead, links included, before a file is
touched.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from garboard.errors import BadUsage

_MAX_LINKS = 40  # as many as the kernel follows

_current: Path | None = None


@contextmanager
def inside(root: str) -> Iterator[None]:
    """Look all paths up below `root` while the block runs; an empty one means the machine's own."""
    global _current  # a process has one root, here as with chroot(2)
    before = _current
    if root:
        folder = Path(root).absolute()
        if not folder.is_dir():
            raise BadUsage(f"failed to change root path to {root}: it is not a directory", hint="check --rootfs")
        _current = folder.resolve()
    try:
        yield
    finally:
        _current = before


def changed_root() -> Path | None:
    """Return the folder that stands for `/`, or None where nothing was changed."""
    return _current


def at(path: str | Path, *, follows_last: bool = True) -> Path:
    """Return where a path of the user's is on this machine; without `follows_last` it may be a link itself."""
    return Path(path) if _current is None else _below(_current, Path(path), follows_last=follows_last)


def _below(root: Path, path: Path, *, follows_last: bool) -> Path:
    """Resolve a path as if `root` were `/`; a relative one starts there, as after a change of root."""
    left, reached, links = list(reversed(path.parts)), root, 0
    while left:
        part = left.pop()
        if part == "/":
            reached = root
        elif part == "..":
            reached = reached if reached == root else reached.parent
        elif (reached / part).is_symlink() and links < _MAX_LINKS and (left or follows_last):
            links += 1
            left += reversed((reached / part).readlink().parts)
        else:
            reached = reached / part
    return reached
