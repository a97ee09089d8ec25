"""A plan: its steps in order, each with its phase, node, reason and preconditions, and its notes."""

import hashlib
import json

from garboard.engine.action import Action
from garboard.engine.gate import Gate
from garboard.values import dataclass


@dataclass(frozen=True, slots=True)
class Precondition:
    """A file as planning found it: the digest of its content, or an empty one if there was no file."""

    path: str
    sha256: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumChange:
    """By how much the voting members of etcd, and those of them that are up, differ from before the run.

    `voters_before` is how many voted then, all of them up; 0 if planning cannot know it, as in a join.
    """

    voters: int = 0
    up: int = 0
    voters_before: int = 0

    @property
    def needed(self) -> int:
        """How many have to be up for a majority; only if the voters are known."""
        return (self.voters_before + self.voters) // 2 + 1


@dataclass(frozen=True, slots=True)
class Step:
    """One action and its reason; phase and node are filled in when phases are combined into a plan.

    If a precondition does not hold when the step is about to begin, the plan is stale, and the step is not begun.
    Successive steps of the same `unit` end together: a run is not stopped between them. `restarts` are the containers
    that the step ends and that start again, by it or by a later step; `quorum_after` is what is expected of etcd when
    the step has ended, where that changes. `lasts_once` is a gate that opens when there is no way back for the file
    that the step writes: on the way back of its unit, that file is then left as the step wrote it.
    """

    action: Action
    cause: str
    phase: str = ""
    node: str = ""
    preconditions: tuple[Precondition, ...] = ()
    unit: str = ""
    restarts: tuple[str, ...] = ()
    quorum_after: QuorumChange | None = None
    lasts_once: Gate | None = None


@dataclass(frozen=True, slots=True)
class Note:
    """A line about a plan that is not a step: what is kept, or a warning."""

    text: str
    is_warning: bool = False
    phase: str = ""


@dataclass(frozen=True, slots=True)
class Observation:
    """What planning has read, as `file PATH`, and the digest or version that it had; none if it was not there."""

    name: str
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """Ordered steps. Equal inputs give equal plans: a plan contains nothing that is only known later.

    `observed` is what the plan was made from, in the order of names. A plan that was saved is stale once any of it has
    moved.
    """

    steps: tuple[Step, ...] = ()
    notes: tuple[Note, ...] = ()
    observed: tuple[Observation, ...] = ()

    @property
    def observed_digest(self) -> str:
        """The digest of all that was observed: the same for plans that were made from the same world."""
        pairs = [[each.name, each.digest] for each in self.observed]
        return hashlib.sha256(json.dumps(pairs, separators=(",", ":")).encode()).hexdigest()

    @property
    def warnings(self) -> tuple[Note, ...]:
        return tuple(note for note in self.notes if note.is_warning)
