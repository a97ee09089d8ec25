"""Findings as text, as JSON and as SARIF, whose structure code hosts rely on."""

from typing import Any, cast

import pytest

from garboard.documents import Position
from garboard.model import DEFAULT_VERSION
from garboard.patches import (
    Finding,
    Severity,
    count_errors,
    findings_as_json,
    findings_as_sarif,
    findings_as_text,
    summary,
)
from garboard.patches.findings import Related
from garboard.patches.rules import RULES

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


FINDINGS = [
    Finding("patches/a b.yaml", Position(3, 5), "unknown-field", "PodSpec has no field 'x'", "did you mean 'y'?"),
    Finding(
        "./patches/b.yaml",
        Position(1, 1),
        "overlapping-patches",
        "spec.x is written twice",
        None,
        Severity.WARNING,
        (Related("patches/a b.yaml", Position(9, 2), "written here first"),),
    ),
    Finding("/etc/patches/c.yaml", Position(7, 1), "unknown-field", "no"),
    Finding("d.yaml", Position(1, 1), "some-rare-failure", "told by the engine"),
]


@pytest.fixture
def run() -> dict[str, Any]:
    log = cast(dict[str, Any], findings_as_sarif(FINDINGS, tool_version="1.2.3"))
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-2.1.0.json")
    assert set(log) == {"$schema", "version", "runs"}
    assert len(log["runs"]) == 1
    return cast(dict[str, Any], log["runs"][0])


def test_run_names_its_tool_and_how_columns_count(run: dict[str, Any]) -> None:
    driver = run["tool"]["driver"]
    assert (driver["name"], driver["semanticVersion"]) == ("garboard", "1.2.3")
    assert run["columnKind"] in ("utf16CodeUnits", "unicodeCodePoints")


def test_every_rule_used_is_described_once_and_no_other(run: dict[str, Any]) -> None:
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == sorted({each.error_class for each in FINDINGS})
    for rule in rules:
        for text in ("shortDescription", "fullDescription", "help"):
            assert rule[text]["text"].strip()


def test_every_result_points_to_its_rule(run: dict[str, Any]) -> None:
    rules = run["tool"]["driver"]["rules"]
    assert len(run["results"]) == len(FINDINGS)
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in ("none", "note", "warning", "error")
        assert result["message"]["text"]


def test_level_is_the_severity_and_the_message_has_the_hint(run: dict[str, Any]) -> None:
    assert [result["level"] for result in run["results"]] == ["error", "warning", "error", "error"]
    assert run["results"][0]["message"]["text"] == "PodSpec has no field 'x' (did you mean 'y'?)"


def test_every_place_is_a_uri_with_a_line_and_a_column(run: dict[str, Any]) -> None:
    places = [
        location for result in run["results"] for location in result["locations"] + result.get("relatedLocations", [])
    ]
    assert len(places) == len(FINDINGS) + 1
    for place in places:
        region = place["physicalLocation"]["region"]
        assert region["startLine"] >= 1
        assert region["startColumn"] >= 1
        assert " " not in place["physicalLocation"]["artifactLocation"]["uri"]


def test_relative_files_stay_relative_to_the_source_root(run: dict[str, Any]) -> None:
    files = [result["locations"][0]["physicalLocation"]["artifactLocation"] for result in run["results"]]
    assert files == [
        {"uri": "patches/a%20b.yaml", "uriBaseId": "%SRCROOT%"},
        {"uri": "patches/b.yaml", "uriBaseId": "%SRCROOT%"},
        {"uri": "file:///etc/patches/c.yaml"},
        {"uri": "d.yaml", "uriBaseId": "%SRCROOT%"},
    ]


def test_related_place_has_a_number_and_a_message(run: dict[str, Any]) -> None:
    [related] = run["results"][1]["relatedLocations"]
    assert related["id"] == 1
    assert related["message"]["text"] == "written here first"
    assert related["physicalLocation"]["region"] == {"startLine": 9, "startColumn": 2}


def test_without_findings_the_log_is_still_whole() -> None:
    log = cast(dict[str, Any], findings_as_sarif([], tool_version="1"))
    assert log["runs"][0]["results"] == []
    assert log["runs"][0]["tool"]["driver"]["rules"] == []


def test_rules_are_named_by_their_ids_and_say_something() -> None:
    for name, rule in RULES.items():
        assert name == rule.id
        assert rule.summary
        assert rule.help.endswith(".")
