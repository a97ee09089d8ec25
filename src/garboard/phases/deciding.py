"""Decisions about credentials, as steps and notes."""

from collections.abc import Iterator

from garboard.engine import Issue, Note, Step
from garboard.pki.decide import Decision, Keep, Refuse, Skip
from garboard.pki.tree import refuse_problems


def steps_for(decision: Decision, action: Issue, cause: str) -> Iterator[Step | Note]:
    """Yield the action if it was decided for, and what there is to say; a refusal is raised."""
    match decision:
        case Refuse():
            refuse_problems([decision])
        case Skip():
            yield Note(decision.message)
        case Keep():
            yield Note(decision.message)
            yield from (Note(text, is_warning=True) for text in decision.warnings)
        case _:
            yield from (Note(text, is_warning=True) for text in decision.warnings)
            yield Step(action, cause)
