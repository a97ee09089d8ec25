"""garboard as a node can run it: a copy where every node looks, for /tmp and /var are its own; it may kill itself."""

import importlib.util
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

# What garboard and its dependencies import to write a node's files.
_PACKAGES = ("garboard", "click", "msgspec", "yaml", "cryptography", "cffi", "_cffi_backend", "pycparser", "hpack")
_KILLING = """
import os, signal
from garboard.engine.journal import Journal
told = Journal.{moment}
def telling(self, index, *more):
    if "{moment}" == "end" and index == {index}: os.kill(os.getpid(), signal.SIGKILL)
    told(self, index, *more)
    if index == {index}: os.kill(os.getpid(), signal.SIGKILL)
Journal.{moment} = telling
"""


@dataclass(frozen=True)
class KillPoint:
    """Where a run is killed: when the begin of a step is on disk, or when it is done and its end is not yet."""

    moment: Literal["begin", "end"]
    index: int

    def code(self) -> str:
        return _KILLING.format(moment=self.moment, index=self.index)


@contextmanager
def garboard_copy(kill: KillPoint | None = None) -> Iterator[tuple[str, ...]]:
    """Return the command that runs garboard in a node; with `kill`, one that does not survive that point."""
    folder = Path(tempfile.mkdtemp(prefix="garboard-test-", dir="/opt"))
    try:
        for name in _PACKAGES:
            spec = importlib.util.find_spec(name)
            if spec is not None and spec.submodule_search_locations:
                shutil.copytree(spec.submodule_search_locations[0], folder / name)
            elif spec is not None and spec.origin:
                shutil.copy(spec.origin, folder)
        (folder / "run.py").write_text(f"{kill.code() if kill else ''}\nfrom garboard.cli.main import main\nmain()\n")
        yield ("env", f"PYTHONPATH={folder}", str(Path(sys.executable).resolve()), str(folder / "run.py"))
    finally:
        shutil.rmtree(folder)
