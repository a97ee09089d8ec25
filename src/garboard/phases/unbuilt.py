"""Phases that have their place in a workflow but cannot be carried out yet."""

from collections.abc import Callable, Iterator
from typing import TypeVar

from garboard.engine import Note, Step, Unsupported

AnyContext = TypeVar("AnyContext")


def not_built(what: str) -> Callable[[AnyContext], Iterator[Step | Note]]:
    """Return a plan that says what is missing: it can be printed, and the executor refuses it before the first step."""

    def plan(_context: AnyContext) -> Iterator[Step | Note]:
        yield Step(Unsupported(what=what), "")

    return plan
