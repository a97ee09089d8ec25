"""The kinds, component flags and feature gates of one Kubernetes minor; a kind is found by what a person types, too."""

import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Literal, cast

import msgspec

from garboard.errors import InvalidValue
from garboard.model import KubernetesVersion, Minor, reference_version
from garboard.schema.suggest import suggest
from garboard.schema.types import StructType, TypeTable

Stage = Literal["alpha", "beta", "ga", "deprecated"]

_DATA = Path(__file__).parent / "data"  # importlib.resources would cost more to import than the data to read


@dataclass(frozen=True, slots=True)
class ComponentFlag:
    """A flag without its dashes. The Kubernetes components, not etcd, also take underscores for dashes."""

    name: str
    type: str  # pflag's word: bool, string, stringSlice, int32, duration, ip, mapStringBool, …; etcd: also "ignored"
    is_deprecated: bool = False
    is_hidden: bool = False


@dataclass(frozen=True, slots=True)
class ComponentGate:
    """A feature gate with its stage and default; a component does not start if a locked one is set to another value."""

    name: str
    stage: Stage
    default: bool
    is_locked: bool = False


class ComponentData(msgspec.Struct, frozen=True):
    """One component in the shipped file `flags.json.z`; every flag and gate is a line of words."""

    flags: dict[str, str]
    feature_gates: dict[str, str]
    choices: dict[str, list[str]] | None


class ComponentOptions:
    """What one program of a release accepts on its command line."""

    def __init__(self, data: ComponentData) -> None:
        self._data = data

    @cached_property
    def flags(self) -> Mapping[str, ComponentFlag]:
        return {name: _flag(name, notation) for name, notation in self._data.flags.items()}

    @cached_property
    def feature_gates(self) -> Mapping[str, ComponentGate]:
        return {name: _gate(name, notation) for name, notation in self._data.feature_gates.items()}

    @cached_property
    def choices(self) -> Mapping[str, frozenset[str]]:
        """Return, for a few flags, the words they accept: admission plugins and controllers."""
        return {flag: frozenset(words) for flag, words in (self._data.choices or {}).items()}


def _flag(name: str, notation: str) -> ComponentFlag:
    type_, *words = notation.split(" ")
    return ComponentFlag(name, type_, is_deprecated="deprecated" in words, is_hidden="hidden" in words)


def _gate(name: str, notation: str) -> ComponentGate:
    stage, default, *words = notation.split(" ")
    return ComponentGate(name, cast(Stage, stage), default=default == "on", is_locked="locked" in words)


class _TypeData(msgspec.Struct):
    """The shipped file `types.json.z` of a minor."""

    roots: dict[str, str]  # "apps/v1 Deployment" -> "apps/v1.Deployment"
    self_written: dict[str, str]  # "api/resource.Quantity" -> "quantity"
    types: dict[str, msgspec.Raw]


@dataclass(frozen=True, slots=True)
class KnownKind:
    """A kind that has a type in this minor."""

    api_version: str
    name: str
    type: StructType

    def __str__(self) -> str:
        return f"{self.api_version} {self.name}"

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]


class Schema:
    """Types, flags and feature gates of one Kubernetes minor."""

    def __init__(self, version: KubernetesVersion) -> None:
        self.version = version
        data = msgspec.json.decode(read_data(version.as_minor, "types.json.z"), type=_TypeData)
        self._roots = data.roots
        self._types = TypeTable(data.types, data.self_written)

    def __repr__(self) -> str:
        return f"Schema({self.version})"

    def type_of(self, api_version: str, kind: str) -> StructType | None:
        name = self._roots.get(f"{api_version} {kind}")
        return None if name is None else self._types[name]

    def type_named(self, name: str) -> StructType:
        """Return a type by its Go name, such as `core/v1.PodSpec`."""
        return self._types[name]

    def kinds(self) -> tuple[KnownKind, ...]:
        """Return every kind, the preferred version of a name first."""
        return tuple(sorted((self._kind(root) for root in self._roots), key=_preference))

    def find_kind(self, text: str) -> KnownKind:
        """Find a kind as a person writes it: `Deployment`, `apps/v1 Deployment` or `apps/v1/Deployment`."""
        api_version, name = _split_kind(text)
        candidates = [kind for kind in self.kinds() if not api_version or kind.api_version == api_version]
        for same in (lambda kind: kind.name == name, lambda kind: kind.name.lower() == name.lower()):
            found = next(filter(same, candidates), None)
            if found is not None:
                return found
        raise self._unknown_kind(text, api_version, name)

    def component(self, name: str) -> ComponentOptions | None:
        """Return what `kube-apiserver`, `kubelet`, `etcd` and the others accept in this minor."""
        return self._components.get(name)

    @cached_property
    def _components(self) -> Mapping[str, ComponentOptions]:
        data = msgspec.json.decode(read_data(self.version.as_minor, "flags.json.z"), type=dict[str, ComponentData])
        return {name: ComponentOptions(each) for name, each in data.items()}

    def _unknown_kind(self, text: str, api_version: str, name: str) -> InvalidValue:
        kinds = self.kinds()
        elsewhere = [str(kind) for kind in kinds if kind.name.lower() == name.lower()]
        near = suggest(name, [kind.name for kind in kinds])
        if elsewhere:
            hint = f"{api_version} has no {name}; there is {', '.join(elsewhere)}"
        elif near is not None:
            hint = "did you mean " + " or ".join(str(kind) for kind in kinds if kind.name == near) + "?"
        else:
            hint = (
                "write a built-in kind, such as Deployment or `apps/v1 Deployment`; custom resources have no type here"
            )
        message = f"{text!r} is not a kind of Kubernetes {self.version.as_minor}"
        return InvalidValue(message, hint=hint, error_class="unsupported-kind")

    def _kind(self, root: str) -> KnownKind:
        api_version, name = root.split(" ")
        return KnownKind(api_version, name, self._types[self._roots[root]])


@cache
def _load_reference(version: KubernetesVersion) -> Schema:
    return Schema(version)


def load_schema(version: KubernetesVersion) -> Schema:
    """Return the schema of the minor of `version`, read once per process."""
    return _load_reference(reference_version(version))


def read_data(minor: Minor, name: str) -> bytes:
    """Return a shipped data file, uncompressed."""
    return zlib.decompress((_DATA / f"v{minor}" / name).read_bytes())


def _split_kind(text: str) -> tuple[str, str]:
    """Split into apiVersion (or nothing) and kind."""
    head, _, name = text.strip().replace(" ", "/").rpartition("/")
    return re.sub("/+", "/", head).strip("/"), name


_FIRST_GROUPS = ("", "apps", "batch")
_STABILITY = {"": 0, "beta": 1, "alpha": 2}


def _preference(kind: KnownKind) -> tuple[str, int, str, int, int, int]:
    """Order: by name, then core, apps, batch before other groups, then stable before beta, then the newest version."""
    group, _, version = kind.api_version.rpartition("/")
    found = re.fullmatch(r"v([0-9]+)(?:(alpha|beta)([0-9]+))?", version)
    major, stage, step = found.groups() if found is not None else ("0", "alpha", "0")
    rank = _FIRST_GROUPS.index(group) if group in _FIRST_GROUPS else len(_FIRST_GROUPS) + (group == "extensions")
    return kind.name, rank, group, _STABILITY[stage or ""], -int(major), -int(step or 0)
