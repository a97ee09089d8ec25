"""What becomes of live differences that nothing explains: kept as patches, dropped, or a reason to stop."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import StrEnum

from garboard.drift import CapturedFile, Difference, DriftKind
from garboard.drift.leaves import FlagStep
from garboard.errors import BadUsage
from garboard.patches import Finding
from garboard.values import dataclass


class DriftChoice(StrEnum):
    """What a user decides about a difference."""

    KEEP = "keep"
    DROP = "drop"
    ABORT = "abort"


@dataclass(frozen=True, slots=True)
class DriftChoices:
    """The choices of a command line: one for everything, and others for fields by name."""

    everything: DriftChoice | None = None
    by_name: Mapping[str, DriftChoice] = field(default_factory=dict)

    @classmethod
    def parse(cls, words: Sequence[str]) -> "DriftChoices":
        """Read `keep`, `drop` and `abort`, alone or behind `COMPONENT=` or `COMPONENT:FIELD=`."""
        everything, by_name = None, dict[str, DriftChoice]()
        for word in words:
            name, _, text = word.rpartition("=")
            if text not in tuple(DriftChoice):
                raise BadUsage(
                    f"--drift {word}: {text!r} is none of {', '.join(DriftChoice)}",
                    hint="write it as --drift keep, or for one field --drift kube-apiserver:--profiling=keep",
                )
            if name:
                by_name[name] = DriftChoice(text)
            else:
                everything = DriftChoice(text)
        return cls(everything, by_name)

    def of(self, difference: Difference) -> DriftChoice | None:
        """Return the choice for a difference, the most exact name first; None if nothing was chosen."""
        found = (self.by_name.get(name) for name in names_of(difference))
        return next((choice for choice in found if choice is not None), self.everything)

    def unused(self, differences: Sequence[Difference]) -> tuple[str, ...]:
        """Return the names that no difference has."""
        known = {name for each in differences for name in names_of(each)}
        return tuple(name for name in self.by_name if name not in known)


def names_of(difference: Difference) -> tuple[str, ...]:
    """Return the names by which a command line may choose for a difference; a flag may stand for its field."""
    component, path = difference.component, difference.path
    short = (f"{component}:{path[-1]}",) if path and isinstance(path[-1], FlagStep) else ()
    return (f"{component}:{difference.field}", *short, component)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDrift:
    """How a node differs from what its cluster declares, and what was chosen about that."""

    differences: tuple[Difference, ...] = ()
    chosen: tuple[tuple[Difference, DriftChoice], ...] = ()  # about hand edits
    kept: tuple[CapturedFile, ...] = ()  # the patches that keep them
    later: tuple[Difference, ...] = ()  # of addons, which another node upgrades
    unused: tuple[str, ...] = ()  # names on the command line that no difference has
    findings: tuple[Finding, ...] = ()  # of lint, against the target
    former_findings: tuple[Finding, ...] = ()  # those that the former version has as well

    @property
    def stopping(self) -> tuple[Difference, ...]:
        """The differences that stop an upgrade: no patch explains them, and nobody has chosen what becomes of them."""
        decided = {id(each) for each, choice in self.chosen if choice is not DriftChoice.ABORT}
        return tuple(each for each in hand_edits(self.differences) if id(each) not in decided)

    @property
    def unlike_declared(self) -> tuple[Difference, ...]:
        """What an upgrade to the same version would change.

        Surroundings and spelling do not count, nor what would be kept, such as an edit of CoreDNS.
        """
        kept = {id(each) for each, choice in self.chosen if choice is DriftChoice.KEEP and each.running.is_known}
        kinds = (DriftKind.HAND_EDIT, DriftKind.PENDING)
        return tuple(each for each in self.differences if each.kind in kinds and id(each) not in kept)


def hand_edits(differences: Sequence[Difference]) -> tuple[Difference, ...]:
    return tuple(each for each in differences if each.kind is DriftKind.HAND_EDIT)
