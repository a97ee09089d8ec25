"""Building programs from their Go modules: one `go build` for all that share a module, in a folder of its own."""

import json
import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from garboard.errors import GarboardError, NotReady
from garboard.lab.binaries.gomod import ModuleFile, render_go_mod
from garboard.lab.binaries.pins import Module, Wanted, link_variables
from garboard.lab.machine import Machine

Report = Callable[[str], None]
PROGRESS_EVERY_S = 10.0
# A build of the seven Kubernetes programs fills about 5 GB of Go's two caches on the way.
NEEDED_BYTES = 8 * 1024**3


@dataclass(frozen=True, slots=True)
class Builder:
    """Builds into `workspace`, which survives an interruption so that the next run goes on where this one stopped."""

    machine: Machine
    workspace: Path
    build_cache: Path
    report: Report

    def build(self, wanted: Sequence[Wanted]) -> dict[Wanted, Path]:
        """Build programs that share a module and a version; return the folder that holds the files of each."""
        go = self.machine.find_program("go")
        if go is None:
            raise NotReady(
                "there is no `go` on PATH to build the lab's programs with",
                hint="install Go 1.26 or newer, `pip install 'garboard[go]'`, or pass --from with ready programs",
                error_class="no-go",
            )
        self._check_disk()
        module, version = wanted[0].program.module, wanted[0].version
        folder = self._folder(wanted[0])
        folder.mkdir(parents=True, exist_ok=True)
        if module is None:
            self._prepare_local(folder, wanted)
        else:
            self._prepare_module(go, folder, module, version)
        return {each: self._build_one(go, folder, each) for each in self._compiled(go, folder, wanted)}

    def tidy(self, wanted: Wanted) -> None:
        """Remove what the build of `wanted` and its like left behind."""
        shutil.rmtree(self._folder(wanted), ignore_errors=True)

    def _folder(self, wanted: Wanted) -> Path:
        module = wanted.program.module
        return self.workspace / f"{module.path.replace('/', '_') if module else 'local'}@{wanted.version}"

    def _check_disk(self) -> None:
        self.workspace.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(self.workspace).free
        if free < NEEDED_BYTES:
            raise NotReady(
                f"a build needs about {NEEDED_BYTES // 1024**3} GB in {self.workspace}, {free // 1024**3} GB are free",
                hint="free some space, or set XDG_CACHE_HOME to a larger disk",
                error_class="no-space",
            )

    def _prepare_local(self, folder: Path, wanted: Sequence[Wanted]) -> None:
        self.machine.write_file(folder / "go.mod", b"module garboard.build\n\ngo 1.21\n")
        for source in {name for each in wanted for name in each.program.files.values()}:
            self.machine.write_file(folder / source, resources.files(__package__).joinpath(source).read_bytes())

    def _prepare_module(self, go: Path, folder: Path, module: Module, version: str) -> None:
        self.report(f"fetching the source of {module.path} {version}")
        # Outside of any module, or go would want the version to agree with a go.mod that is not there yet.
        downloaded = self.machine.run(
            [go, "mod", "download", "-json", f"{module.path}@{version}"], cwd=self.workspace, env=self._environment()
        )
        facts = json.loads(downloaded.stdout)
        if facts["Sum"] != module.sums[version]:
            raise GarboardError(
                f"{module.path} {version} has the hash {facts['Sum']}, pinned is {module.sums[version]}",
                hint="do not use it: the module proxy served other bytes than were published",
                error_class="bad-checksum",
            )
        described = self.machine.run([go, "mod", "edit", "-json", facts["GoMod"]], cwd=folder, env=self._environment())
        original = ModuleFile.from_json(json.loads(described.stdout))
        self.machine.write_file(folder / "go.mod", render_go_mod(module, version, original).encode())
        self.machine.write_file(folder / "go.sum", self.machine.read_file(Path(facts["Dir"]) / "go.sum"))

    def _compiled(self, go: Path, folder: Path, wanted: Sequence[Wanted]) -> Sequence[Wanted]:
        """Compile the packages of everything at once, so that shared ones are compiled in parallel and only once."""
        packages = [_package(each, name) for each in wanted for name in each.program.files]
        names = ", ".join(dict.fromkeys(each.program.name for each in wanted))
        title = f"{names} {wanted[0].version}"
        self.report(f"building {title} (minutes when nothing is cached)")
        count, began, told = 0, time.monotonic(), time.monotonic()

        def progress(_line: str) -> None:
            nonlocal count, told
            count += 1
            if time.monotonic() - told > PROGRESS_EVERY_S:
                told = time.monotonic()
                self.report(f"building {title}: {count} packages compiled, {told - began:.0f} s")

        command = self._go_build(go, wanted[0])
        self.machine.stream(
            [*command, "-v", "-o", os.devnull, *packages], progress, cwd=folder, env=self._environment()
        )
        return wanted

    def _build_one(self, go: Path, folder: Path, wanted: Wanted) -> Path:
        out = folder / "out" / wanted.program.name
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        for name in wanted.program.files:
            command = [*self._go_build(go, wanted), "-o", out / name, _package(wanted, name)]
            self.machine.run(command, cwd=folder, env=self._environment())
        return out

    def _go_build(self, go: Path, wanted: Wanted) -> list[str | Path]:
        module = wanted.program.module
        pairs = link_variables(module, wanted.version) if module else (f"main.version={wanted.version}",)
        flags = " ".join(["-s", "-w", *(f"-X {pair}" for pair in pairs)])
        return ["nice", go, "build", "-mod=mod", "-trimpath", "-buildvcs=false", "-ldflags", flags]

    def _environment(self) -> dict[str, str]:
        return {"CGO_ENABLED": "0", "GOCACHE": str(self.build_cache), "GOWORK": "off", "GOFLAGS": ""}


def _package(wanted: Wanted, file: str) -> str:
    module, package = wanted.program.module, wanted.program.files[file]
    if module is None:
        return f"./{package}"
    return f"{module.path}/{package}".rstrip("/")
