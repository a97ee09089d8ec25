"""Findings as SARIF 2.1.0, the format that code hosts turn into annotations on a change."""

from collections.abc import Sequence
from urllib.parse import quote

from garboard.documents import Json, Position
from garboard.patches.findings import Finding
from garboard.patches.rules import rule_of

SCHEMA_URI = "https://json.schemastore.org/sarif-2.1.0.json"


def findings_as_sarif(findings: Sequence[Finding], *, tool_version: str) -> Json:
    """Return a SARIF log with one run; relative file names stay relative to the root of the source tree."""
    ids = sorted({finding.error_class for finding in findings})
    return {
        "$schema": SCHEMA_URI,
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
