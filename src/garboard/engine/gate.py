"""Gates: conditions with a deadline, each with its probe and with the evidence that explains why it stays closed.

The engine prints and journals a gate; the interpreter that waits passes it a view of the node to read.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias

from garboard.documents import Json
from garboard.errors import GarboardError
from garboard.retry import Pauses
from garboard.values import dataclass

Probe: TypeAlias = Callable[[], str | None]  # None if the gate is open, else what was found instead, in words


@dataclass(frozen=True, slots=True)
class Evidence:
    """What can be found out about a gate that stays closed, and the command that shows more."""

    lines: tuple[str, ...] = ()
    next_command: str = ""


class Gate(ABC):
    """A condition to wait for, as a value without secrets."""

    __slots__ = ()
    timeout_s: float
    # The first probes come quickly, for most gates open within moments; later ones leave the machine its time.
    pauses: ClassVar[Pauses] = Pauses(first_s=0.02, longest_s=0.15, growth=1.1)
    # It guards the beginning of what follows: a run that is resumed later does not look at it again.
    is_for_beginning: ClassVar[bool] = False

    @property
    @abstractmethod
    def name(self) -> str:
        """What is waited for, in words: it ends the sentence "wait for …"."""

    @abstractmethod
    def describe(self) -> dict[str, Json]:
        """Say what will be probed."""

    @abstractmethod
    def probe(self, view: Any, /) -> Probe:
        """Return the probe that is repeated until the gate is open; what it needs first is found here, and may fail."""

    @abstractmethod
    def evidence(self, view: Any, /) -> Evidence:
        """Find out why the gate is still closed."""

    def failure(self, found: str, evidence: Evidence) -> GarboardError:
        """Return the error for a gate that did not open in time; `found` is what the last probe found instead."""
        return GateFailed(self, found, evidence)


class WillNotOpen(Exception):
    """What a probe raises that has seen why its gate never opens, and says so: nobody has to wait any longer."""


class GateFailed(GarboardError):
    """A gate did not open in time, or never will. Its message carries the evidence, one fact in a line."""

    default_class = "gate-timeout"

    def __init__(self, gate: Gate, found: str, evidence: Evidence, *, is_final: bool = False) -> None:
        lines = "".join(f"\n  {line}" for text in evidence.lines for line in text.splitlines())
        waited = "waited" if is_final else f"waited {gate.timeout_s:.0f} s"
        super().__init__(
            f"{waited} in vain for {gate.name}: {found}{lines}",
            hint=evidence.next_command or None,
        )
        self.evidence = evidence
