"""The columns of the table in `traits`: what the engine has to know of a kind of action."""

from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeAlias, TypeVar

from garboard.documents import Json
from garboard.engine import pre_image as before
from garboard.engine.action import Action
from garboard.engine.pre_image import Keep, Observers, PreImage
from garboard.values import dataclass

ActionT = TypeVar("ActionT")
Document: TypeAlias = dict[str, Json]


@dataclass(frozen=True, slots=True)
class ProbeInputs:
    """What a probe needs to tell whether an interrupted step is done.

    `outcomes` are those of earlier steps, `facts` what the step itself recorded before it was interrupted.
    """

    observers: Observers
    outcomes: Mapping[str, str]
    facts: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits(Generic[ActionT]):
    """The row of one kind of action."""

    tag: str  # names the kind in journals and in plans as JSON; never changed
    ability: str  # what cannot be done here if there is no interpreter for it
    title: Callable[[ActionT], str]  # what a step does, in one line
    document: Callable[[ActionT], Document] = lambda _action: {}  # its members in a plan as JSON, without secrets
    details: Callable[[ActionT], list[str]] = lambda _action: []  # further lines in a plan as text
    type: Callable[[ActionT], str] | None = None  # the type in a plan as JSON, where that says more than the tag
    # What it waits for, mostly without changing anything: a signal ends it at once, as a kill would.
    waits_for: str = ""
    loses: str = ""  # what it takes away for good: undo of a run that has begun it ends there
    fits_units: bool = False  # on the way back of a unit it is repeated, or its file is restored
    is_repeatable: bool = False  # a second try does no harm while the cluster cannot be reached
    writes: Callable[[ActionT], tuple[str, ...]] = lambda _action: ()  # the files it makes or replaces
    changes: Callable[[ActionT], tuple[str, ...]] = lambda _action: ()  # files and folders that it changes besides
    removes: Callable[[ActionT], tuple[str, ...]] = lambda _action: ()  # the files among these that it takes away
    # Whether a file holds what the step itself wrote before it was interrupted; the facts are those of every attempt.
    wrote: Callable[[ActionT, str, bytes, "Sequence[Mapping[str, str]]"], bool] = lambda *_inputs: False
    pre_image: Callable[[ActionT, Observers, Keep], PreImage] = before.nothing  # what it is about to change
    is_done: Callable[[ActionT, ProbeInputs], bool] = lambda _action, _inputs: False  # if unknown, it is repeated
    needs: Callable[[ActionT], tuple[str, ...]] = lambda _action: ()  # the outcomes of earlier steps that it uses
    # A finished step whose effect may have gone since is repeated, unless a later step for which this holds is done.
    lapses_until: Callable[[ActionT, Action], bool] | None = None


def mode_text(mode: int) -> str:
    return f"{mode:04o}"


def given(**members: Json) -> Document:
    """Return the members that are not empty."""
    return {name: value for name, value in members.items() if value}
