"""What is wrong with fleet documents: every problem with its file, line and field."""

from collections.abc import Sequence

from garboard.documents import DocumentPath
from garboard.errors import BadDocument
from garboard.patches import SourceText
from garboard.values import dataclass


@dataclass(frozen=True, slots=True)
class DocumentProblem:
    """One thing that is wrong, at one place."""

    where: str  # file:line:column; empty where the message begins with it
    message: str
    hint: str | None = None

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message


class InvalidFleetDocuments(BadDocument):
    """Documents that Hive would refuse too, or that contradict each other; `problems` is everything that was found."""

    default_class = "invalid-fleet-document"

    def __init__(self, problems: Sequence[DocumentProblem]) -> None:
        self.problems = tuple(dict.fromkeys(problems))
        first, *others = self.problems
        hint = first.hint or next((each.hint for each in others if each.hint), None)
        super().__init__("\n".join([str(first), *(f"  also {each}" for each in others)]), hint=hint)


def problem_at(source: SourceText, at: DocumentPath, message: str, hint: str | None = None) -> DocumentProblem:
    """Return a problem with a field, which the message begins with."""
    field = field_text(at)
    return DocumentProblem(source.where(at), f"{field}: {message}" if field else message, hint)


def field_text(at: DocumentPath) -> str:
    """Return a path as it is written for people: `spec.inventory[0].name`."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in at)
    return text.removeprefix(".")
