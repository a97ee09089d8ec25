"""Go programs that tests ask, kept in the user's cache by the digest of all that they are built from.

They are compiled with the flags of the lab's programs and into the same build cache, so that what both need is compiled
once. `tools.harness.oracles` lists them, and builds them before the tests.
"""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from garboard.host import Machine
from garboard.lab.binaries import SHARED_FLAGS, Binaries

MAX_AGE_S = 30 * 86_400.0
_FLAGS = (*SHARED_FLAGS, "-ldflags=-s -w")


@dataclass(frozen=True)
class GoProgram:
    """A program: its name, a digest of all that decides it, how its sources are laid out, and what `go` is told then.

    The commands leave the program as `program` in the folder of the sources.
    """

    name: str
    digest: str
    lay_out: Callable[[Path], object]
    commands: tuple[tuple[str, ...], ...]

    @property
    def path(self) -> Path:
        return oracles_home() / f"{self.name}-{self.digest[:16]}"

    def built(self) -> Path:
        """Return where the program is, after building it if it was not there."""
        if not self.path.exists():
            with Binaries(Machine()).in_use():
                self._build()
        self.path.touch()  # it is still wanted
        return self.path

    def _build(self) -> None:
        workspace = self.path.with_name(f"{self.path.name}.{os.getpid()}.build")
        workspace.mkdir(parents=True)
        try:
            self.lay_out(workspace)
            for command in self.commands:
                subprocess.run(["nice", "go", *command], cwd=workspace, env=go_environment(), check=True)
            (workspace / "program").replace(self.path)
        finally:
            shutil.rmtree(workspace, ignore_errors=True)


def oracles_home() -> Path:
    return Binaries(Machine()).cache.parent / "oracles"


def go_environment() -> dict[str, str]:
    """Return the environment of `go`; -mod=mod fills in what modules need, at the versions they ask for."""
    build_cache = str(Binaries(Machine()).build_cache_folder)
    return {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod", "GOWORK": "off", "GOCACHE": build_cache}


def program_in(name: str, folder: Path) -> GoProgram:
    """Return the program of a folder that has a go.mod and a go.sum of its own."""
    return _of_files(name, {each: (folder / each).read_bytes() for each in ("main.go", "go.mod", "go.sum")})


def program_against(name: str, folder: Path, requires: Mapping[str, str]) -> GoProgram:
    """Return the program of the Go file in `folder`, built against the modules (path to version) in `requires`."""
    lines = ["module garboard.invalid/oracle", "go 1.26.0", *(f"require {path} {requires[path]}" for path in requires)]
    go_mod = "\n".join(lines) + "\n"
    return _of_files(name, {"main.go": (folder / "main.go").read_bytes(), "go.mod": go_mod.encode()})


def tests_of(module: str, package: str, version: str) -> GoProgram:
    """Return the program with the tests of a package, built from a published module."""
    go_mod = f"module garboard.invalid/suite\n\ngo 1.25.0\n\nrequire {module} {version}\n"
    get = ("get", f"{module}/{package}@{version}")
    build = ("test", "-c", *_FLAGS, "-o", "program", f"{module}/{package}")
    return _of_files("suite", {"go.mod": go_mod.encode()}, (get, build))


def build_command(package: str) -> tuple[str, ...]:
    """Return what `go` is told to build a package of the module in its folder."""
    return ("build", *_FLAGS, "-o", "program", package)


def _of_files(
    name: str, files: Mapping[str, bytes], commands: tuple[tuple[str, ...], ...] = (build_command("."),)
) -> GoProgram:
    content = hashlib.sha256(repr((sorted(files.items()), commands)).encode())

    def lay_out(folder: Path) -> None:
        for each, data in files.items():
            (folder / each).write_bytes(data)

    return GoProgram(name, content.hexdigest(), lay_out, commands)


def remove_unused(now_s: float) -> None:
    """Remove programs that nobody has wanted for a month, and what builds that were killed have left as long ago."""
    for path in oracles_home().glob("*"):
        with suppress(FileNotFoundError):
            if path.stat().st_mtime < now_s - MAX_AGE_S:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
