"""garboard itself in the nodes: one copy in the home of all labs, from which every node gets hard links."""

import compileall
import hashlib
import importlib.util
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from garboard.lab.layout import NodeFiles
from garboard.lab.machine import LabMachine

# A node does not see every folder of the machine.
GARBOARD_FOLDER = "opt/garboard"
# garboard and what it imports at run time.
PACKAGES = ("garboard", "click", "msgspec", "yaml", "cryptography", "cffi", "_cffi_backend", "pycparser", "hpack")
_SCRIPT = """\
#!/bin/sh
PYTHONPATH=/{folder} exec {python} -sP -c 'from garboard.cli.main import main; main()' "$@"
"""


@dataclass(frozen=True, slots=True)
class NodeGarboard:
    """garboard and what it imports, as it is on this machine; `store` is where the copy for nodes is kept."""

    store: Path
    python: str
    packages: Sequence[Path]

    def install(self, machine: LabMachine, nodes: Sequence[NodeFiles]) -> None:
        """Put garboard into nodes that are not running yet, as /usr/bin/garboard."""
        machine.make_folder(self.store)
        # The lock lasts until the links are made: another garboard would remove the copy meanwhile.
        with machine.locked(self.store / ".lock"):
            copy = self._copy(machine)
            for files in nodes:
                machine.make_folder((files.upper / GARBOARD_FOLDER).parent)
                machine.run(["cp", "--archive", "--link", "--", copy, files.upper / GARBOARD_FOLDER])
        script = _SCRIPT.format(folder=GARBOARD_FOLDER, python=self.python).encode()
        for files in nodes:
            machine.write_in_place(files.upper / "usr/bin/garboard", script, mode=0o755)

    def _copy(self, machine: LabMachine) -> Path:
        """Find the copy of these very files, or make it; one of others goes."""
        wanted = self.store / self.digest()
        if not wanted.is_dir():
            for other in self.store.glob("[!.]*"):
                machine.remove_tree(other)
            made = self.store / ".new"
            machine.remove_tree(made, ignore_errors=True)
            machine.make_folder(made)
            copy: list[str | Path] = ["cp", "--recursive", "--dereference", "--preserve=mode,timestamps", "--"]
            machine.run([*copy, *self.packages, made])
            machine.rename(made, wanted)
        return wanted

    def digest(self) -> str:
        """Tell apart programs by the names, sizes and times of their files."""
        rows = sorted(f"{path} {seen.st_size} {seen.st_mtime_ns}" for path in self._files() for seen in [path.stat()])
        return hashlib.sha256("\n".join(rows).encode()).hexdigest()[:16]

    def _files(self) -> Iterator[Path]:
        for package in self.packages:
            yield from (path for path in package.rglob("*") if path.is_file()) if package.is_dir() else [package]


def compiled_packages() -> tuple[Path, ...]:
    """Find garboard and what it imports, and compile it, once for all nodes: each would do so at its first command."""
    found: list[Path] = []
    for name in PACKAGES:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations:
            compileall.compile_dir(spec.submodule_search_locations[0], quiet=2)
            found.append(Path(spec.submodule_search_locations[0]))
        elif spec is not None and spec.origin:
            found.append(Path(spec.origin))
    return tuple(found)
