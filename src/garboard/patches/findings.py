"""What a careful reader would object to in a patch: the same value for lint, for strict mode and for warnings."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from garboard.documents import Position
from garboard.errors import PatchFailed


class Severity(StrEnum):
    """Errors are what strict mode refuses; warnings are worth a look and never refused."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One objection, at one place of one patch file."""

    file: str
    position: Position
    error_class: str
    message: str
    hint: str | None = None
    severity: Severity = Severity.ERROR

    @property
    def where(self) -> str:
        return f"{self.file}:{self.position.line}:{self.position.column}"


class PatchRefused(PatchFailed):
    """Strict mode's answer to findings; carries them all."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        first, *others = findings
        lines = [f"{first.where}: {first.message}"]
        lines += [f"  also [{each.error_class}] {each.where}: {each.message}" for each in others]
        super().__init__(
            "\n".join(lines),
            error_class=first.error_class,
            hint=first.hint or "correct the patch, or pass --compat to apply it the way kubeadm and kubectl would",
        )
        self.findings = tuple(findings)


def refuse_errors(findings: Sequence[Finding]) -> None:
    """Raise if any finding is an error."""
    errors = [each for each in findings if each.severity is Severity.ERROR]
    if errors:
        raise PatchRefused(errors)
