"""Colour: who asks for it gets it, and a terminal does unless its owner minds."""

import sys

import pytest

from garboard.cli.color import is_wanted, painted_diff, painted_findings


@pytest.mark.parametrize(
    ("choice", "is_terminal", "environment", "wanted"),
    [
        ("auto", True, {}, True),
        ("auto", False, {}, False),
        ("auto", True, {"NO_COLOR": "1"}, False),
        ("auto", True, {"NO_COLOR": ""}, True),
        ("auto", True, {"TERM": "dumb"}, False),
        ("always", False, {"NO_COLOR": "1"}, True),
        ("never", True, {}, False),
    ],
)
def test_who_gets_color(
    choice: str, is_terminal: bool, environment: dict[str, str], wanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert is_wanted(choice) is wanted


@pytest.mark.parametrize(
    ("line", "code"), [("+a\n", "32"), ("-a\n", "31"), ("@@ -1 +1 @@\n", "36"), ("--- a\n", "1"), ("+++ a\n", "1")]
)
def test_line_of_a_diff_has_its_color_and_ends_outside_it(line: str, code: str) -> None:
    assert painted_diff(line) == f"\x1b[{code}m{line[:-1]}\x1b[0m\n"


def test_context_has_no_color() -> None:
    assert painted_diff(" a\n") == " a\n"


def test_severity_of_a_finding_has_a_color_and_the_words_stay() -> None:
    text = "a.yaml:1:1: error[no-change]: x\n  hint: y\na.yaml:2:1: warning[deprecated-flag]: error[x] in words\n"
    painted = painted_findings(text)
    assert painted.count("\x1b[31m") == 1
    assert painted.count("\x1b[33m") == 1
    plain = painted.replace("\x1b[31m", "").replace("\x1b[33m", "").replace("\x1b[0m", "")
    assert plain == text
