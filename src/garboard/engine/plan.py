"""A plan: what will be done, in order, by whom and why; and what there is to say about it."""

from collections.abc import Iterable

from garboard.engine.action import Action, Issue, WriteFile
from garboard.values import dataclass


@dataclass(frozen=True, slots=True)
class Step:
    """One action and its cause; phase and node are filled in by who asked for it."""

    action: Action
    cause: str
    phase: str = ""
    node: str = ""


@dataclass(frozen=True, slots=True)
class Note:
    """Something to know about a plan: what stays as it is, or a warning."""

    text: str
    is_warning: bool = False
    phase: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """Ordered steps. Equal inputs give equal plans: nothing that is only known later is in it."""

    steps: tuple[Step, ...] = ()
    notes: tuple[Note, ...] = ()

    @property
    def warnings(self) -> tuple[Note, ...]:
        return tuple(note for note in self.notes if note.is_warning)


def written_by(action: Action) -> tuple[str, ...]:
    """Return the files that an action writes."""
    match action:
        case WriteFile():
            return (action.path,)
        case Issue():
            return tuple(file.path for file in action.files)
        case _:
            return ()


def paths_written(steps: Iterable[Step]) -> frozenset[str]:
    """Return every file that will be there once the steps have been done."""
    return frozenset(path for step in steps for path in written_by(step.action))
