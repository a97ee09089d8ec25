"""Findings for people and for programs."""

from collections.abc import Sequence

from garboard.documents import Json, Position
from garboard.model import KubernetesVersion
from garboard.patches.findings import Finding, Severity


def findings_as_text(findings: Sequence[Finding]) -> str:
    """Return one line for each finding, as compilers write them, and its hint below."""
    lines = []
    for each in findings:
        lines.append(f"{each.where}: {each.severity}[{each.error_class}]: {each.message}\n")
        if each.hint:
            lines.append(f"  hint: {each.hint}\n")
    return "".join(lines)


def findings_as_json(findings: Sequence[Finding], version: KubernetesVersion) -> Json:
    errors = count_errors(findings)
    return {
        "kubernetesVersion": str(version),
        "errors": errors,
        "warnings": len(findings) - errors,
        "findings": [_as_json(finding) for finding in findings],
    }


def summary(findings: Sequence[Finding], version: KubernetesVersion) -> str:
    """Return the line that ends a run: how much was found, against which release."""
    errors = count_errors(findings)
    return f"{_many(errors, 'error')}, {_many(len(findings) - errors, 'warning')} against Kubernetes {version}"


def count_errors(findings: Sequence[Finding]) -> int:
    return sum(finding.severity is Severity.ERROR for finding in findings)


def _many(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def _as_json(finding: Finding) -> Json:
    told: dict[str, Json] = {
        **_place(finding.file, finding.position),
        "severity": str(finding.severity),
        "rule": finding.error_class,
        "message": finding.message,
        "hint": finding.hint,
    }
    if finding.related:
        told["related"] = [{**_place(each.file, each.position), "message": each.message} for each in finding.related]
    return told


def _place(file: str, position: Position) -> dict[str, Json]:
    return {"file": file, "line": position.line, "column": position.column}
