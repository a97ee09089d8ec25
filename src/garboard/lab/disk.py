"""What folders take up on disk, and how that is written."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path


def walk(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """List everything below a folder, links as such; what goes meanwhile is left out."""
    for top, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = Path(top, name)
            try:
                yield path, path.lstat()
            except FileNotFoundError:
                continue


def own_bytes(folder: Path) -> int:
    """Return what removing `folder` would free: its blocks on disk, without files that have links elsewhere."""
    files: dict[tuple[int, int], tuple[os.stat_result, int]] = {}
    for _, found in walk(folder):
        key = (found.st_dev, found.st_ino)
        files[key] = (found, files.get(key, (found, 0))[1] + 1)
    return sum(
        found.st_blocks * 512 for found, seen in files.values() if stat.S_ISDIR(found.st_mode) or seen == found.st_nlink
    )


def bytes_text(size: int) -> str:
    """Write a number of bytes as people read it."""
    return f"{size / 1024**3:.1f} GiB" if size >= 1024**3 else f"{size / 1024**2:.0f} MiB"
