"""garboard as a program of the lab's nodes."""

import compileall
import importlib.util
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# What garboard and its dependencies import to set up a node.
_PACKAGES = ("garboard", "click", "msgspec", "yaml", "cryptography", "cffi", "_cffi_backend", "pycparser", "hpack")


@contextmanager
def garboard_for_nodes() -> Iterator[tuple[str, ...]]:
    """Return the command that runs garboard in a node: a copy where every node looks, for /tmp and /var are its own."""
    folder = Path(tempfile.mkdtemp(prefix="garboard-test-", dir="/opt"))
    try:
        for name in _PACKAGES:
            spec = importlib.util.find_spec(name)
            if spec is not None and spec.submodule_search_locations:
                shutil.copytree(spec.submodule_search_locations[0], folder / name)
            elif spec is not None and spec.origin:
                shutil.copy(spec.origin, folder)
        # As installed: a node must not compile every module again in each run.
        compileall.compile_dir(folder, quiet=2, force=False)
        python = str(Path(sys.executable).resolve())
        # As in an environment of its own: -S leaves out what other packages hooked into this machine's Python.
        yield ("env", f"PYTHONPATH={folder}", python, "-S", "-c", "from garboard.cli.main import main; main()")
    finally:
        shutil.rmtree(folder)
