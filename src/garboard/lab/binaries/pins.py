"""The pinned versions: which programs there are, where each comes from, and which versions belong together."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Self

from garboard.errors import BadUsage
from garboard.model import DEFAULT_VERSION

# What a node or a control plane of the lab runs; kubectl is how a person looks at it.
CLUSTER_PROGRAMS = (
    "kubeadm", "kubectl", "kubelet", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy",
    "etcd", "etcdctl", "coredns", "pause", "cni-plugins", "crictl",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Module:
    """A Go module with the hash of each pinned version."""

    path: str
    sums: Mapping[str, str] = field(hash=False)
    staging: bool = False
    variables: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Release:
    """Where a project publishes its builds: a program, or an archive with `member` in it, and a checksum file."""

    url: str
    checksum: str
    member: str | None = None


@dataclass(frozen=True, slots=True)
class Program:
    """A program: its files by the Go package each is built from, its module and, where there is one, its release."""

    name: str
    module: Module | None
    files: Mapping[str, str] = field(hash=False)
    follows: str | None = None
    release: Release | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """A program at one version."""

    program: Program
    version: str

    def __str__(self) -> str:
        return f"{self.program.name} {self.version}"

    @property
    def file(self) -> str | None:
        """The one file of the program; None for a folder of several."""
        return next(iter(self.program.files)) if len(self.program.files) == 1 else None


@dataclass(frozen=True, slots=True)
class Pins:
    kubernetes: Mapping[str, Mapping[str, str]]
    alone: Mapping[str, str]
    programs: Mapping[str, Program]

    @classmethod
    def parse(cls, data: bytes) -> Self:
        document = tomllib.loads(data.decode())
        modules = {path: _module(path, fields) for path, fields in document["module"].items()}
        releases = {name: Release(**fields) for name, fields in document["release"].items()}
        programs = {name: _program(name, fields, modules, releases) for name, fields in document["program"].items()}
        return cls(document["kubernetes"], document["alone"], programs)

    def wanted(self, program: str, version: str | None = None, *, kubernetes: str = str(DEFAULT_VERSION)) -> Wanted:
        """Name `program` at `version`, or at the version that belongs to the Kubernetes release `kubernetes`."""
        found = self.programs.get(program)
        if found is None:
            raise BadUsage(f"the lab knows no program {program!r}", hint=f"known are {', '.join(self.programs)}")
        chosen = version or self._version_for(found, kubernetes)
        known = self.versions(found)
        if chosen not in known:
            raise BadUsage(
                f"{program} {chosen} is not known to the lab; known are {', '.join(known)}",
                hint="see `garboard lab binaries list`, or put the program in a folder and pass --from",
            )
        return Wanted(found, chosen)

    def versions(self, program: Program) -> tuple[str, ...]:
        """The pinned versions of `program`, newest first."""
        if program.name in self.alone:
            return (self.alone[program.name],)
        if program.follows is None:
            return tuple(self.kubernetes)
        return tuple(dict.fromkeys(group[program.follows] for group in self.kubernetes.values()))

    def _version_for(self, program: Program, kubernetes: str) -> str:
        if program.name in self.alone:
            return self.alone[program.name]
        group = self.kubernetes.get(kubernetes)
        if group is None:
            raise BadUsage(
                f"Kubernetes {kubernetes} is not known to the lab; known are {', '.join(self.kubernetes)}",
                hint=f"pass --kubernetes-version {next(iter(self.kubernetes))}",
            )
        return kubernetes if program.follows is None else group[program.follows]


def read_pins() -> Pins:
    """Read the pinned versions that come with garboard."""
    return Pins.parse(resources.files(__package__).joinpath("pins.toml").read_bytes())


def link_variables(module: Module, version: str) -> tuple[str, ...]:
    """Return the `name=value` pairs that the linker writes into programs of `module` at `version`."""
    major, minor = [*re.findall(r"\d+", version), "0", "0"][:2]
    return tuple(each.format(version=version, major=major, minor=minor) for each in module.variables)


def _module(path: str, fields: Mapping[str, Any]) -> Module:
    return Module(
        path=path,
        sums=fields["sum"],
        staging=fields.get("staging", False),
        variables=tuple(fields.get("variables", ())),
        beside=tuple(fields.get("beside", ())),
    )


def _program(
    name: str, fields: Mapping[str, Any], modules: Mapping[str, Module], releases: Mapping[str, Release]
) -> Program:
    return Program(
        name=name,
        module=modules[fields["module"]] if fields["module"] else None,
        files=fields["files"],
        follows=fields.get("follows"),
        release=releases[fields["release"]] if "release" in fields else None,
    )
