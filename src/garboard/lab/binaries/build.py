"""Building programs from their Go modules: one `go build` for all that share a module, in a folder of its own."""

import json
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Self

from garboard.errors import GarboardError, NotReady
from garboard.lab.binaries.pins import Module, Wanted, link_variables
from garboard.lab.machine import LabMachine

Report = Callable[[str], None]
PROGRESS_EVERY_S = 10.0
# A build of the seven Kubernetes programs fills about 5 GB of Go's two caches on the way.
NEEDED_BYTES = 8 * 1024**3
# What is compiled with other flags is compiled anew. Facts for a debugger would be left out by the linker anyway; not
# to make them saves an eighth of the time.
SHARED_FLAGS = ("-mod=mod", "-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false")


@dataclass(frozen=True, slots=True)
class Builder:
    """Builds into `workspace`, which survives an interruption so that the next run goes on where this one stopped."""

    machine: LabMachine
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
        folder = self._folder(wanted[0])
        self._prepare(go, folder, wanted)
        self._compile(go, folder, wanted)
        return {each: self._sort_out(folder, each) for each in wanted}

    def fetch(self, wanted: Sequence[Wanted]) -> None:
        """Download the source that a build of `wanted` needs, while another build has the processors."""
        go = self.machine.find_program("go")
        if go is None or wanted[0].program.module is None:
            return
        folder = self.workspace / f"fetch-{uuid.uuid4().hex[:8]}"
        try:
            self._prepare(go, folder, wanted)
            listed: list[str | Path] = [go, "list", "-mod=mod", "-deps", "-f", "{{.Name}}", *_packages(wanted)]
            self.machine.run(listed, cwd=folder, env=self._environment())
        except GarboardError:
            pass  # the build meets the same trouble, and tells of it
        finally:
            self.machine.remove_tree(folder, ignore_errors=True)

    def tidy(self, wanted: Wanted) -> None:
        """Remove the folder in which `wanted`, and what shares its module and version, was built."""
        self.machine.remove_tree(self._folder(wanted), ignore_errors=True)

    def _folder(self, wanted: Wanted) -> Path:
        module = wanted.program.module
        return self.workspace / f"{module.path.replace('/', '_') if module else 'local'}@{wanted.version}"

    def _check_disk(self) -> None:
        self.machine.make_folder(self.workspace)
        free = self.machine.free_bytes(self.workspace)
        if free < NEEDED_BYTES:
            raise NotReady(
                f"a build needs about {NEEDED_BYTES // 1024**3} GB in {self.workspace}, {free // 1024**3} GB are free",
                hint="free some space, or set XDG_CACHE_HOME to a larger disk",
                error_class="no-space",
            )

    def _prepare(self, go: Path, folder: Path, wanted: Sequence[Wanted]) -> None:
        module = wanted[0].program.module
        self.machine.make_folder(folder)
        if module is None:
            self.machine.write_file(folder / "go.mod", b"module garboard.build\n\ngo 1.21\n")
        else:
            self._prepare_module(go, folder, module, wanted[0].version)
        for source in {name for each in wanted for name in each.program.files.values() if name.endswith(".go")}:
            self.machine.write_file(folder / source, resources.files(__package__).joinpath(source).read_bytes())

    def _prepare_module(self, go: Path, folder: Path, module: Module, version: str) -> None:
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

    def _compile(self, go: Path, folder: Path, wanted: Sequence[Wanted]) -> None:
        """Build everything in one call, so that shared packages are compiled once and the rest in parallel."""
        names = ", ".join(dict.fromkeys(each.program.name for each in wanted))
        title = f"{names} {wanted[0].version}"
        self.report(f"building {title} (minutes when nothing is cached)")
        count, began, reported = 0, time.monotonic(), time.monotonic()

        def progress(_line: str) -> None:
            nonlocal count, reported
            count += 1
            if time.monotonic() - reported > PROGRESS_EVERY_S:
                reported = time.monotonic()
                self.report(f"building {title}: {count} packages compiled, {reported - began:.0f} s")

        together = folder / "together"
        self.machine.remove_tree(together, ignore_errors=True)
        self.machine.make_folder(together)
        packages = _packages(wanted)
        # Of one package Go takes the name of the file; of several, a folder, and it names the files itself.
        out = together / _made_name(wanted[0], next(iter(wanted[0].program.files))) if len(packages) == 1 else together
        command = [*self._go_build(go, wanted[0]), "-v", "-o", out, *packages]
        self.machine.stream(command, progress, cwd=folder, env=self._environment())

    def _sort_out(self, folder: Path, wanted: Wanted) -> Path:
        """Move the files of a program into a folder of their own."""
        out = folder / "out" / wanted.program.name
        self.machine.remove_tree(out, ignore_errors=True)
        self.machine.make_folder(out)
        for name in wanted.program.files:
            self.machine.rename(folder / "together" / _made_name(wanted, name), out / name)
        return out

    def _go_build(self, go: Path, wanted: Wanted) -> list[str | Path]:
        module = wanted.program.module
        pairs = link_variables(module, wanted.version) if module else (f"main.version={wanted.version}",)
        flags = " ".join(["-s", "-w", *(f"-X {pair}" for pair in pairs)])
        return ["nice", go, "build", *SHARED_FLAGS, "-ldflags", flags]

    def _environment(self) -> dict[str, str]:
        return {"CGO_ENABLED": "0", "GOCACHE": str(self.build_cache), "GOWORK": "off", "GOFLAGS": ""}


def _packages(wanted: Sequence[Wanted]) -> list[str]:
    return [_package(each, name) for each in wanted for name in each.program.files]


def _package(wanted: Wanted, file: str) -> str:
    module, package = wanted.program.module, wanted.program.files[file]
    if module is None or package.endswith(".go"):
        return f"./{package}"
    return f"{module.path}/{package}".rstrip("/")


def _made_name(wanted: Wanted, file: str) -> str:
    """Name a built file as Go does: after the last part of its package, or as the program where that has none."""
    return wanted.program.files[file].rpartition("/")[2].removesuffix(".go") or file


# --- the go.mod of a build --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ModuleFile:
    """The parts of a module's go.mod that a build of it has to repeat."""

    go: str
    godebug: tuple[tuple[str, str], ...]
    requires: tuple[tuple[str, str], ...]

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """Read the output of `go mod edit -json`."""
        return cls(
            go=document["Go"],
            godebug=tuple((each["Key"], each["Value"]) for each in document.get("Godebug") or ()),
            requires=tuple((each["Path"], each["Version"]) for each in document.get("Require") or ()),
        )


def render_go_mod(module: Module, version: str, original: ModuleFile) -> str:
    """Write the go.mod of a main module from which the programs of `module` at `version` can be built.

    Only the main module's `replace` lines count in Go, so what the module's own go.mod says by folder (`./staging/…`)
    is said again here by version.
    """
    lines = ["module garboard.build", "", f"go {original.go}"]
    lines += [f"godebug {key}={value}" for key, value in original.godebug]
    lines += [f"require {module.path} {version}"]
    if module.staging:
        # v0.0.0 and nothing else marks a staging module; pseudo-versions (v0.0.0-2026…) are ordinary ones.
        staged = [path for path, required in original.requires if required == "v0.0.0" and path.startswith("k8s.io/")]
        lines += [f"replace {path} => {path} {staging_version(version)}" for path in staged]
    lines += [f"replace {path} => {path} {version}" for path in module.beside]
    return "\n".join(lines) + "\n"


def staging_version(kubernetes: str) -> str:
    """Return the version under which the staging modules of a Kubernetes release are published: v1.36.4 → v0.36.4."""
    return "v0." + kubernetes.removeprefix("v").split(".", 1)[1]
