"""Flags of workflows and their phases, as data: the command line is made of these tables."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

from garboard.model.go_flags import split_list
from garboard.values import dataclass

FlagKind: TypeAlias = Literal["text", "switch", "number", "list", "map"]
FlagValue: TypeAlias = str | bool | int | tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag by its name without dashes; `list` values are separated by commas and may be repeated."""

    name: str
    help: str
    kind: FlagKind = "text"
    default: str | int | None = None
    metavar: str | None = None
    is_hidden: bool = False
    choices: tuple[str, ...] = ()
    letter: str = ""  # its short form, without the dash


@dataclass(frozen=True, slots=True)
class GivenFlags:
    """What a command line says, by flag name; what is not on it has the flag's default."""

    values: Mapping[str, FlagValue]
    given: frozenset[str] = frozenset()  # those that were really written

    def text(self, name: str) -> str:
        value = self.values.get(name)
        return value if isinstance(value, str) else ""

    def number(self, name: str, default: int) -> int:
        value = self.values.get(name)
        return value if isinstance(value, int) else default

    def switch(self, name: str) -> bool:
        return self.values.get(name) is True

    def texts(self, name: str) -> tuple[str, ...]:
        """Return the values of a flag that may be repeated, each as it was written."""
        value = self.values.get(name)
        return value if isinstance(value, tuple) else ()

    def list(self, name: str) -> tuple[str, ...]:
        """Return the values of a flag that may be repeated and may hold several each."""
        return tuple(part for text in self.texts(name) for part in split_list(text))


def by_name(*flags: Flag) -> Mapping[str, Flag]:
    return {flag.name: flag for flag in flags}


# How garboard reads a file and prints a plan; kubeadm has none of these, and every phase has all of them.
OWN_FLAGS = by_name(
    Flag("strict-config", "Refuse unknown fields and repeated keys in the configuration file.", "switch"),
    Flag("strict-patches", "Refuse patches that strict mode objects to; otherwise it warns.", "switch"),
    Flag("timings", "At the end, say on stderr how long each phase took.", choices=("text", "json")),
)
# A single phase that fails is undone without being asked.
WORKFLOW_FLAGS = by_name(
    Flag("undo-on-failure", "If a step fails, take back everything that this run has done.", "switch"),
    Flag("diagnostics", "If a step fails, keep in this folder what tells why; no secrets.", metavar="DIR"),
)

CONFIG = Flag("config", "A kubeadm configuration file.", metavar="FILE")
DRY_RUN = Flag("dry-run", "Print the plan and change nothing.", "switch")
SHARED_FLAGS = by_name(
    CONFIG,
    DRY_RUN,
    Flag("apiserver-advertise-address", "The address of this node's API server.", metavar="IP"),
    Flag("apiserver-bind-port", "The port of this node's API server.", "number", 6443),
    Flag("certificate-key", "The key with which shared certificates are encrypted, 64 hexadecimal digits."),
    Flag("cri-socket", "The socket of the container runtime.  [default: the one that is there]", metavar="PATH"),
    Flag("ignore-preflight-errors", "Checks whose errors are only warnings; all for all.", "list", metavar="CHECKS"),
    Flag("node-name", "The name of the node.  [default: the host name]"),
    Flag("patches", "A directory of patches, named target[suffix][+patchtype].{yaml|json}.", metavar="DIR"),
    Flag("skip-phases", "Phases to leave out.", "list", metavar="PHASES"),
)
