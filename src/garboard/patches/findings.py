"""What a careful reader would object to in a patch: the same value for lint, for strict mode and for warnings."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from garboard.documents import Position
from garboard.errors import PatchFailed


class Severity(StrEnum):
    """Errors are what strict mode refuses; warnings are worth a look and never refused."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Related:
    """Another place that a finding speaks of, such as the patch that loses to this one."""

    file: str
    position: Position
    message: str

    @property
    def where(self) -> str:
        return f"{self.file}:{self.position.line}:{self.position.column}"


@dataclass(frozen=True, slots=True)
class Finding:
    """One objection, at one place of one patch file."""

    file: str
    position: Position
    error_class: str
    message: str
    hint: str | None = None
    severity: Severity = Severity.ERROR
    related: tuple[Related, ...] = ()

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
    """Strict mode's answer to findings; carries them all. `hint` is for those that have none of their own."""

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
    """Raise if any finding is an error; one that came up for several objects is told once."""
    errors = [each for each in dict.fromkeys(findings) if each.severity is Severity.ERROR]
    if errors:
        raise PatchRefused(errors, hint)
