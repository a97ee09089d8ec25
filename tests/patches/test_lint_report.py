"""Findings for people and for programs."""

from garboard.documents import Position
from garboard.model import DEFAULT_VERSION
from garboard.patches import Finding, Severity, count_errors, findings_as_json, findings_as_text, summary
from garboard.patches.findings import Related

ERROR = Finding("a.yaml", Position(2, 3), "unknown-field", "no field 'x'", "did you mean 'y'?")
WARNING = Finding(
    "b.yaml",
    Position(1, 1),
    "overlapping-patches",
    "written twice",
    severity=Severity.WARNING,
    related=(Related("a.yaml", Position(2, 3), "written here first"),),
)


def test_text_has_place_severity_rule_message_and_hint() -> None:
    assert findings_as_text([ERROR, WARNING]) == (
        "a.yaml:2:3: error[unknown-field]: no field 'x'\n"
        "  hint: did you mean 'y'?\n"
        "b.yaml:1:1: warning[overlapping-patches]: written twice\n"
    )


def test_json_has_everything_apart() -> None:
    assert findings_as_json([ERROR, WARNING], DEFAULT_VERSION) == {
        "kubernetesVersion": "v1.37.1",
        "errors": 1,
        "warnings": 1,
        "findings": [
            {
                "file": "a.yaml",
                "line": 2,
                "column": 3,
                "severity": "error",
                "rule": "unknown-field",
                "message": "no field 'x'",
                "hint": "did you mean 'y'?",
            },
            {
                "file": "b.yaml",
                "line": 1,
                "column": 1,
                "severity": "warning",
                "rule": "overlapping-patches",
                "message": "written twice",
                "hint": None,
                "related": [{"file": "a.yaml", "line": 2, "column": 3, "message": "written here first"}],
            },
        ],
    }


def test_summary_counts() -> None:
    assert summary([ERROR, WARNING], DEFAULT_VERSION) == "1 error, 1 warning against Kubernetes v1.37.1"
    assert summary([], DEFAULT_VERSION) == "0 errors, 0 warnings against Kubernetes v1.37.1"
    assert count_errors([ERROR, WARNING, ERROR]) == 2
