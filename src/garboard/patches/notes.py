"""Collecting findings about one patch: from a place in its document to a line and column of its file."""

from dataclasses import dataclass, field

from garboard.documents import DocumentPath, Position
from garboard.patches.findings import Finding, Severity
from garboard.patches.origin import value_at
from garboard.patches.patch import Patch, PatchType


@dataclass(frozen=True, slots=True)
class Notes:
    """The findings about one patch, in the order in which they were made."""

    patch: Patch
    findings: list[Finding] = field(default_factory=list)

    def error(self, rule: str, message: str, at: DocumentPath, hint: str | None = None) -> None:
        self._note(rule, message, self.patch.source.position(at), hint, Severity.ERROR)

    def warning(self, rule: str, message: str, at: DocumentPath, hint: str | None = None) -> None:
        self._note(rule, message, self.patch.source.position(at), hint, Severity.WARNING)

    def error_in_pointer(self, rule: str, message: str, at: DocumentPath, token: int, hint: str | None = None) -> None:
        """Note an error at one token of the JSON pointer that stands at `at`."""
        self._note(rule, message, token_position(self.patch, at, token), hint, Severity.ERROR)

    def label(self, at: DocumentPath) -> str:
        """Return the last name in a path, for a message about what stands there."""
        if self.patch.type is PatchType.JSON and len(at) == 2:
            return repr(value_at(self.patch.value, (at[0], "path")))
        names = [step for step in at if isinstance(step, str)]
        return repr(names[-1]) if names else "the document"

    def _note(self, rule: str, message: str, position: Position, hint: str | None, severity: Severity) -> None:
        self.findings.append(Finding(self.patch.source.name, position, rule, message, hint, severity))


def token_position(patch: Patch, at: DocumentPath, token: int) -> Position:
    """Return where a token of a JSON pointer stands, or where the pointer begins if its text has escapes or folds."""
    source = patch.source
    start = source.value_position(at)
    pointer = value_at(patch.value, at)
    assert isinstance(pointer, str)
    lines = source.text.split("\n")
    written = lines[start.line - source.line][start.column - 1 :] if start.line - source.line < len(lines) else ""
    quote = 1 if written[:1] in ("'", '"') else 0
    if not written[quote:].startswith(pointer):
        return start
    before = sum(len(each) + 1 for each in pointer.split("/")[: token + 1])
    return Position(start.line, start.column + quote + before)
