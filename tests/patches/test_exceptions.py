"""Exceptions from the rules: comments in patches, and the options of commands."""

import pytest

from garboard.documents import Position
from garboard.errors import BadUsage
from garboard.model import DEFAULT_VERSION
from garboard.patches import (
    ACCEPT,
    IGNORE,
    Finding,
    Patch,
    PatchChecks,
    PatchSubject,
    PatchType,
    Severity,
    SourceText,
    check_codes,
    find_target,
    lint_patches,
    with_exceptions,
)
from garboard.schema import load_schema
from tests.support.rules.component_pods import component_pod

SCHEMA = load_schema(DEFAULT_VERSION)
NO_PROBE = "spec:\n  containers:\n  - name: kube-apiserver\n    livenessProbe: null\n"


def lint(text: str) -> list[Finding]:
    subject = PatchSubject.of_target(find_target("kube-apiserver", DEFAULT_VERSION), SCHEMA)
    patch = Patch.from_yaml(SourceText("patch.yaml", text), PatchType.STRATEGIC)
    return lint_patches([patch], subject, PatchChecks(SCHEMA), [component_pod()])


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"# garboard: accept probe-removed because HAProxy probes it\n{NO_PROBE}", id="before the patch"),
        pytest.param(
            NO_PROBE.replace("null", "null  # garboard: accept probe-removed because HAProxy probes it"),
            id="beside the field",
        ),
    ],
)
def test_danger_that_the_patch_accepts_is_a_note_with_the_reason(text: str) -> None:
    [found] = lint(text)
    assert (found.error_class, found.severity, found.hint) == ("probe-removed", Severity.NOTE, None)
    assert found.message.endswith("(accepted: HAProxy probes it)")


def test_danger_that_nobody_accepts_is_an_error_that_tells_how_to() -> None:
    [found] = lint(f"# garboard: accept host-network-off because of another one\n{NO_PROBE}")
    assert found.severity is Severity.ERROR
    assert found.hint == "if it is meant, write `# garboard: accept probe-removed because REASON` into the patch"


@pytest.mark.parametrize(
    ("comment", "message", "hint"),
    [
        pytest.param("accept probe-removed", "the comment makes no exception", "write `# garboard:", id="no reason"),
        pytest.param("accept probe-removed because ", "the comment makes no exception", None, id="an empty reason"),
        pytest.param("allow probe-removed because x", "the comment makes no exception", None, id="another verb"),
        pytest.param(
            "accept probe-remove because x",
            "there is no rule 'probe-remove'",
            "did you mean 'probe-removed'?",
            id="code",
        ),
        pytest.param(
            "accept missing-volume because x", "missing-volume cannot be accepted", "correct the patch", id="validity"
        ),
    ],
)
def test_comment_that_makes_no_exception_is_an_error(comment: str, message: str, hint: str | None) -> None:
    [found] = lint(f"spec:\n  nodeName: a # garboard: {comment}\n")
    assert (found.error_class, found.message, found.position) == ("bad-exception", message, Position(2, 15))
    assert hint is None or (found.hint or "").startswith(hint)


def test_text_that_only_looks_like_a_comment_is_none() -> None:
    assert lint("metadata: {annotations: {note: 'x#garboard: accept'}}") == []


@pytest.mark.parametrize(
    "note",
    [
        pytest.param("note: |\n      # garboard: accept probe-removed because x", id="a block"),
        pytest.param("note: >-\n      a\n\n      b # garboard: accept probe-removed because x", id="a folded block"),
        pytest.param("note: 'a # garboard: accept probe-removed because x'", id="quotes"),
        pytest.param('note: "a\n      # garboard: accept probe-removed because x"', id="quotes on two lines"),
    ],
)
def test_text_of_a_value_accepts_nothing(note: str) -> None:
    removal = "spec: {containers: [{name: kube-apiserver, livenessProbe: null}]}\n"
    text = f"metadata:\n  annotations:\n    {note}\n{removal}"
    assert [(each.error_class, each.severity) for each in lint(text)] == [("probe-removed", Severity.ERROR)]
    comment = "# garboard: accept probe-removed because x"
    assert [each.severity for each in lint(f"{text}{comment}\n")] == [Severity.NOTE]
    accepted = text.replace("|\n", f"| {comment}\n").replace(">-\n", f">- {comment}\n")
    assert accepted == text or [each.severity for each in lint(accepted)] == [Severity.NOTE]


def test_finding_that_a_comment_ignores_is_not_told() -> None:
    text = "spec: {hostNetwork: true}\n"
    assert [each.error_class for each in lint(text)] == ["no-change"]
    assert lint(f"# garboard: ignore no-change because the next release needs it\n{text}") == []


def finding(code: str, severity: Severity = Severity.ERROR) -> Finding:
    return Finding("patch.yaml", Position(1, 1), code, "message", None, severity)


def test_options_accept_disable_and_raise() -> None:
    given = [finding("probe-removed"), finding("no-change"), finding("deprecated-flag", Severity.WARNING)]
    found = with_exceptions(given, accepted=["probe-removed"], disabled=["no-change"], is_strict=True)
    assert [(each.error_class, each.severity) for each in found] == [
        ("probe-removed", Severity.NOTE),
        ("deprecated-flag", Severity.ERROR),
    ]


@pytest.mark.parametrize(
    ("code", "verb"),
    [
        pytest.param("required-field", ACCEPT, id="what Kubernetes refuses"),
        pytest.param("no-change", ACCEPT, id="what is no danger"),
        pytest.param("nonsense", IGNORE, id="no rule"),
    ],
)
def test_code_that_an_option_cannot_take_is_bad_usage(code: str, verb: str) -> None:
    with pytest.raises(BadUsage):
        check_codes([code], verb, "--option")
