"""Findings as text for people, as JSON, and as SARIF 2.1.0, which code hosts turn into annotations on a change."""

from collections.abc import Sequence
from urllib.parse import quote

from garboard.documents import Json, Position
from garboard.model import KubernetesVersion
from garboard.patches.findings import Finding, Severity
from garboard.patches.rules import rule_of

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def findings_as_text(findings: Sequence[Finding]) -> str:
    """Return one line for each finding, as compilers write them, and its hint below."""
    lines = []
    for each in findings:
        lines.append(f"{each.where}: {each.severity}[{each.error_class}]: {each.message}\n")
        if each.hint:
            lines.append(f"  hint: {each.hint}\n")
    return "".join(lines)


def findings_as_json(findings: Sequence[Finding], version: KubernetesVersion) -> Json:
    return {
        "kubernetesVersion": str(version),
        "errors": count_errors(findings),
        "warnings": _count(findings, Severity.WARNING),
        "findings": [_as_json(finding) for finding in findings],
    }


def summary(findings: Sequence[Finding], version: KubernetesVersion) -> str:
    """Return the line that ends a run: how much was found, against which release."""
    counts = [_many(count_errors(findings), "error"), _many(_count(findings, Severity.WARNING), "warning")]
    accepted = _count(findings, Severity.NOTE)
    return f"{', '.join([*counts, *([f'{accepted} accepted'] if accepted else [])])} against Kubernetes {version}"


def count_errors(findings: Sequence[Finding]) -> int:
    return _count(findings, Severity.ERROR)


def _count(findings: Sequence[Finding], severity: Severity) -> int:
    return sum(finding.severity is severity for finding in findings)


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


def findings_as_sarif(findings: Sequence[Finding], *, tool_version: str) -> Json:
    """Return a SARIF log with one run; relative file names stay relative to the root of the source tree."""
    ids = sorted({finding.error_class for finding in findings})
    return {
        "$schema": SARIF_SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "garboard",
                        "semanticVersion": tool_version,
                        "rules": [_rule(each) for each in ids],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": [_result(finding, ids) for finding in findings],
            }
        ],
    }


def _rule(error_class: str) -> Json:
    rule = rule_of(error_class)
    return {
        "id": rule.id,
        "name": "".join(word.capitalize() for word in rule.id.split("-")),
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.help},
        "help": {"text": rule.help},
    }


def _result(finding: Finding, ids: Sequence[str]) -> Json:
    text = finding.message if finding.hint is None else f"{finding.message} ({finding.hint})"
    result: dict[str, Json] = {
        "ruleId": finding.error_class,
        "ruleIndex": ids.index(finding.error_class),
        "level": str(finding.severity),
        "message": {"text": text},
        "locations": [_location(finding.file, finding.position)],
    }
    if finding.related:
        result["relatedLocations"] = [
            {**_location(each.file, each.position), "id": number, "message": {"text": each.message}}
            for number, each in enumerate(finding.related, start=1)
        ]
    return result


def _location(file: str, position: Position) -> dict[str, Json]:
    return {
        "physicalLocation": {
            "artifactLocation": _artifact(file),
            "region": {"startLine": position.line, "startColumn": position.column},
        }
    }


def _artifact(file: str) -> Json:
    # A file name may hold bytes that are no text; as percent escapes they survive.
    path = quote(file.encode("utf-8", "surrogateescape").removeprefix(b"./"))
    return {"uri": f"file://{path}"} if path.startswith("/") else {"uri": path, "uriBaseId": "%SRCROOT%"}
