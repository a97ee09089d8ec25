"""What is wrong or doubtful about a patch, with its place: the same values for lint, strict mode and warnings."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from garboard.documents import DocumentPath, Position
from garboard.errors import PatchFailed
from garboard.patches.json_values import value_at
from garboard.patches.patch import Patch, PatchType


class Severity(StrEnum):
    """Errors are what strict mode refuses; warnings are worth a look and never refused; notes are accepted dangers."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Related:
    """Another place that a finding is about, such as the patch that this one overrides."""

    file: str
    position: Position
    message: str

    @property
    def where(self) -> str:
        return f"{self.file}:{self.position.line}:{self.position.column}"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong or doubtful, at one place of one patch file."""

    file: str
    position: Position
    error_class: str
    message: str
    hint: str | None = None
    severity: Severity = Severity.ERROR
    related: tuple[Related, ...] = ()
    at: DocumentPath = field(default=(), compare=False)  # in the patch document, if the engine found it there

    @property
    def where(self) -> str:
        return f"{self.file}:{self.position.line}:{self.position.column}"


def in_reading_order(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings by file and place, each once."""
    return sorted(
        dict.fromkeys(findings),
        key=lambda each: (each.file, each.position.line, each.position.column, each.error_class, each.message),
    )


LEAVE_STRICT_MODE: Final = "correct the patch, or pass --compat to apply it the way kubeadm and kubectl would"


class PatchRefused(PatchFailed):
    """Strict mode refuses patches with errors; carries all findings. `hint` is used if the first has none."""

    def __init__(self, findings: Sequence[Finding], hint: str = LEAVE_STRICT_MODE) -> None:
        first, *others = findings
        lines = [f"{first.where}: {first.message}"]
        lines += [f"  also [{each.error_class}] {each.where}: {each.message}" for each in others]
        super().__init__(
            "\n".join(lines),
            error_class=first.error_class,
            hint=first.hint or hint,
        )
        self.findings = tuple(findings)


def refuse_errors(findings: Iterable[Finding], hint: str = LEAVE_STRICT_MODE) -> None:
    """Raise if any finding is an error; one that several objects have in common is reported once."""
    errors = [each for each in dict.fromkeys(findings) if each.severity is Severity.ERROR]
    if errors:
        raise PatchRefused(errors, hint)


@dataclass(frozen=True, slots=True)
class PatchFindings:
    """Collects the findings about one patch, each at the line and column of a place in its document."""

    patch: Patch
    all: list[Finding] = field(default_factory=list)

    def error(self, rule: str, message: str, at: DocumentPath, hint: str | None = None) -> None:
        self._add(rule, message, self.patch.source.position(at), hint, Severity.ERROR)

    def warning(self, rule: str, message: str, at: DocumentPath, hint: str | None = None) -> None:
        self._add(rule, message, self.patch.source.position(at), hint, Severity.WARNING)

    def error_in_pointer(self, rule: str, message: str, at: DocumentPath, token: int, hint: str | None = None) -> None:
        """Add an error at one token of the JSON pointer that stands at `at`."""
        self._add(rule, message, token_position(self.patch, at, token), hint, Severity.ERROR)

    def label(self, at: DocumentPath) -> str:
        """Return the last name in a path, for a message about what stands there."""
        if self.patch.type is PatchType.JSON and len(at) == 2:
            return repr(value_at(self.patch.value, (at[0], "path")))
        names = [step for step in at if isinstance(step, str)]
        return repr(names[-1]) if names else "the document"

    def _add(self, rule: str, message: str, position: Position, hint: str | None, severity: Severity) -> None:
        self.all.append(Finding(self.patch.source.name, position, rule, message, hint, severity))


def token_position(patch: Patch, at: DocumentPath, token: int) -> Position:
    """Return where a token of a JSON pointer stands, or where the pointer begins if its text is escaped or folded."""
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
