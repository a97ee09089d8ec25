"""The extensions that were made once, by the digest of what they are made from; all checkouts of a user share them.

A folder gets the name of its digest by a rename, once everything is in it.
"""

import fcntl
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.compiled.modules import EXTENSIONS, compile_copy, digest, is_whole

_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "garboard/compiled")
# One process compiles at a time. What is there is looked up and changed under a lock that is held for a moment only.
_COMPILING, _CHANGING = ".compiling.lock", ".lock"
# Whoever was given a folder copies it at once, but a busy machine may take its time.
_MAX_AGE_S = 86_400.0


def extensions(source: Path) -> Path:
    """Return a folder with the extensions of the package below `source`, compiled once and kept in the cache."""
    kept = _CACHE / digest(source)
    if _is_taken(kept):
        return kept
    print("compiling the tunnel, or waiting for another process that does (minutes)", file=sys.stderr)
    with _locked(_COMPILING), tempfile.TemporaryDirectory(prefix="garboard-compiled-") as name:
        folder = Path(name)
        shutil.copytree(source / "garboard", folder / "garboard", ignore=shutil.ignore_patterns("__pycache__"))
        # Whoever had to wait may find them made, and the sources edited.
        kept = _CACHE / digest(folder)
        if not _is_taken(kept):
            compile_copy(folder)
            _keep(folder, kept)
    return kept


def _is_taken(kept: Path) -> bool:
    """Whether the folder is there as a whole; if so it is noted that it was wanted."""
    with _locked(_CHANGING):
        if not is_whole(kept):
            return False
        os.utime(kept)
        return True


def _keep(made: Path, kept: Path) -> None:
    """Put extensions into the cache, and remove what nobody has wanted for a day."""
    with _locked(_CHANGING), tempfile.TemporaryDirectory(prefix=".new-", dir=_CACHE) as name:
        new = Path(name, kept.name)
        for path in EXTENSIONS:
            _copy_durably(made / path, new / path)
        # There may be what a removal that was cut short has left; or all of it, if somebody removed the locks.
        if not is_whole(kept):
            shutil.rmtree(kept, ignore_errors=True)
            new.rename(kept)
        for folder in _CACHE.iterdir():
            if folder.is_dir() and folder.stat().st_mtime < time.time() - _MAX_AGE_S:
                shutil.rmtree(folder, ignore_errors=True)


def _copy_durably(source: Path, target: Path) -> None:
    """Copy a file so that no crash of the machine leaves an empty one behind a name that says it is whole."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)
    with target.open("rb") as file:
        os.fsync(file.fileno())


@contextmanager
def _locked(name: str) -> Iterator[None]:
    """Hold a lock of the cache. pip runs this without the package's dependencies, so that `garboard.host` is no use."""
    _CACHE.mkdir(parents=True, exist_ok=True)
    with (_CACHE / name).open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
