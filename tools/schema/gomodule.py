"""A throw-away Go module around the programs in this folder, pinned to one release."""

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from garboard.lab.binaries import SHARED_FLAGS
from tools.harness.go_programs import go_environment


@dataclass(frozen=True, slots=True)
class GoModule:
    """A folder with a go.mod; its programs are built and run there."""

    folder: Path

    def build(self, program: str) -> Path:
        """Build the program in `./PROGRAM` and return where it is."""
        binary = self.folder / "bin" / Path(program).name
        _go(["build", *SHARED_FLAGS, "-o", str(binary), f"./{program}"], cwd=self.folder)
        return binary

    def run(self, program: str) -> str:
        """Build the program in `./PROGRAM` and return what it prints."""
        return subprocess.run([self.build(program)], check=True, stdout=subprocess.PIPE, text=True).stdout


def kubernetes_module(version: str, programs: Path, folder: Path) -> GoModule:
    """Lay out `programs` against k8s.io/kubernetes at `version`.

    Its go.mod asks for the staging modules at v0.0.0, which exist only inside its own tree; they are published as
    v0.MINOR.PATCH of the same release.
    """
    release = _download(f"k8s.io/kubernetes@{version}", folder)
    wanted = json.loads(_go(["mod", "edit", "-json", release["GoMod"]], cwd=folder))
    staging = "v0." + version.split(".", 1)[1]
    lines = [
        "module garboard.invalid/schema",
        f"go {wanted['Go']}",
        *(f"godebug {setting['Key']}={setting['Value']}" for setting in wanted.get("Godebug") or []),
        f"require k8s.io/kubernetes {version}",
        *(
            f"replace {each['Path']} => {each['Path']} {staging}"
            for each in wanted["Require"]
            if each["Version"] == "v0.0.0" and each["Path"].startswith("k8s.io/")
        ),
    ]
    _lay_out(programs, folder, lines, sums=Path(release["Dir"]) / "go.sum")
    return GoModule(folder)


def kubernetes_source(version: str, folder: Path) -> Path:
    """Return where the source of k8s.io/kubernetes at `version` is, downloaded if it was not."""
    return Path(_download(f"k8s.io/kubernetes@{version}", folder)["Dir"])


def etcd_module(version: str, programs: Path, folder: Path) -> GoModule:
    """Lay out `programs` against a copy of etcd, to which the one function that shows its flag set is added."""
    release = _download(f"go.etcd.io/etcd/server/v3@{version}", folder)
    wanted = json.loads(_go(["mod", "edit", "-json", release["GoMod"]], cwd=folder))
    lines = [
        "module garboard.invalid/schema",
        f"go {wanted['Go']}",
        f"require go.etcd.io/etcd/server/v3 {version}",
        "replace go.etcd.io/etcd/server/v3 => ./etcd",
    ]
    _lay_out(programs, folder, lines, sums=Path(release["Dir"]) / "go.sum")
    shutil.copytree(release["Dir"], folder / "etcd", copy_function=shutil.copyfile, dirs_exist_ok=True)
    (folder / "etcd/etcdmain").chmod(0o755)  # the module cache is read-only
    shutil.copyfile(programs / "flags/etcd/added.go.txt", folder / "etcd/etcdmain/added.go")
    return GoModule(folder)


def _lay_out(programs: Path, folder: Path, lines: list[str], sums: Path) -> None:
    shutil.copytree(programs, folder, ignore=shutil.ignore_patterns("*.py", "__pycache__"), dirs_exist_ok=True)
    (folder / "go.mod").write_text("\n".join(lines) + "\n")
    shutil.copyfile(sums, folder / "go.sum")
    (folder / "go.sum").chmod(0o644)


def _download(module: str, folder: Path) -> dict[str, Any]:
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = json.loads(_go(["mod", "download", "-json", module], cwd=folder))
    return found


def _go(arguments: list[str], cwd: Path) -> str:
    done = subprocess.run(
        ["go", *arguments], cwd=cwd, env=go_environment(), check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout
