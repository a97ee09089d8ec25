"""The go.mod of a build: it requires one module at one version, in the way that module was meant to be built.

Only the main module's `replace` lines count in Go, so what the module's own go.mod says by folder (`./staging/…`) is
said again here by version.
"""

from dataclasses import dataclass
from typing import Any, Self

from garboard.lab.binaries.pins import Module


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
    """Write the go.mod of a main module from which the programs of `module` at `version` can be built."""
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
