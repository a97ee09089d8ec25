"""The flags and feature gates that a component of a minor takes, hidden and deprecated ones included."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, cast

import msgspec

Stage = Literal["alpha", "beta", "ga", "deprecated"]


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag without its dashes. The Kubernetes components, not etcd, also take underscores for dashes."""

    name: str
    type: str  # pflag's word: bool, string, stringSlice, int32, duration, ip, mapStringBool, …; etcd: also "ignored"
    is_deprecated: bool = False
    is_hidden: bool = False


@dataclass(frozen=True, slots=True)
class FeatureGate:
    """A feature gate and where it stands; setting a locked one to anything but its default stops the component."""

    name: str
    stage: Stage
    default: bool
    is_locked: bool = False


class ComponentData(msgspec.Struct, frozen=True):
    """One component in the shipped file `flags.json.z`; every flag and gate is a line of words."""

    flags: dict[str, str]
    feature_gates: dict[str, str]
    choices: dict[str, list[str]] | None


class Component:
    """What one program of a release accepts on its command line."""

    def __init__(self, data: ComponentData) -> None:
        self._data = data

    @cached_property
    def flags(self) -> Mapping[str, Flag]:
        return {name: _flag(name, notation) for name, notation in self._data.flags.items()}

    @cached_property
    def feature_gates(self) -> Mapping[str, FeatureGate]:
        return {name: _gate(name, notation) for name, notation in self._data.feature_gates.items()}

    @cached_property
    def choices(self) -> Mapping[str, frozenset[str]]:
        """Return, for a few flags, the words they accept: admission plugins and controllers."""
        return {flag: frozenset(words) for flag, words in (self._data.choices or {}).items()}


def _flag(name: str, notation: str) -> Flag:
    type_, *words = notation.split(" ")
    return Flag(name, type_, is_deprecated="deprecated" in words, is_hidden="hidden" in words)


def _gate(name: str, notation: str) -> FeatureGate:
    stage, default, *words = notation.split(" ")
    return FeatureGate(name, cast(Stage, stage), default=default == "on", is_locked="locked" in words)
