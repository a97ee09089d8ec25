"""Exceptions from the rules: comments in a patch, and options of a command.

    # garboard: accept probe-removed because the load balancer probes it
    # garboard: ignore no-change because the next release needs it

`accept` lets a danger pass, here and in strict mode; `ignore` silences a finding of lint. Both need a reason.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from garboard.documents import Position
from garboard.errors import BadUsage
from garboard.patches.findings import Finding, Severity
from garboard.patches.patch import Patch
from garboard.patches.rules import RULES
from garboard.schema import suggest

ACCEPT, IGNORE = "accept", "ignore"
_COMMENT = re.compile(r"(?:^|\s)#\s*garboard:(?P<text>.*)$")
_EXCEPTION = re.compile(r"\s*(?P<verb>accept|ignore)\s+(?P<code>[a-z0-9-]+)\s+because\s+(?P<reason>\S.*?)\s*")
_FORM = "write `# garboard: accept CODE because REASON`, or `ignore` instead of `accept`"


@dataclass(frozen=True, slots=True)
class InlineException:
    verb: str
    code: str
    reason: str


def exceptions_in(patch: Patch) -> list[InlineException]:
    """Return the exceptions that the comments of a patch document make."""
    found = (_EXCEPTION.fullmatch(text) for _, text in _comments(patch))
    return [InlineException(each["verb"], each["code"], each["reason"]) for each in found if each is not None]


def accepted_in(patch: Patch, code: str) -> str | None:
    """Return the reason for which a patch accepts a danger, if it does."""
    reasons = (each.reason for each in exceptions_in(patch) if (each.verb, each.code) == (ACCEPT, code))
    return next(reasons, None)


def check_exceptions(patch: Patch) -> Iterator[Finding]:
    """Yield the comments that make no exception: without a reason, or for a rule that does not exist or allow it."""
    for position, text in _comments(patch):
        found = _EXCEPTION.fullmatch(text)
        if found is None:
            yield Finding(patch.source.name, position, "bad-exception", "the comment makes no exception", _FORM)
        else:
            problem, hint = _problem(found["code"], found["verb"])
            if problem:
                yield Finding(patch.source.name, position, "bad-exception", problem, hint)


def _comments(patch: Patch) -> Iterator[tuple[Position, str]]:
    if "garboard:" not in patch.source.text:
        return
    for number, line in enumerate(patch.source.text.split("\n")):
        found = _COMMENT.search(line)
        if found is not None:
            position = Position(patch.source.line + number, line.index("#", found.start()) + 1)
            if not patch.source.is_in_text(position):
                yield position, found["text"]


def _problem(code: str, verb: str) -> tuple[str, str | None]:
    """Return what is wrong with an exception from a rule, and what to write instead; no text if nothing is."""
    if code not in RULES:
        near = suggest(code, RULES)
        return f"there is no rule {code!r}", f"did you mean {near!r}?" if near else "docs/lint-codes.md lists them"
    if verb == ACCEPT and not RULES[code].is_acceptable:
        return f"{code} cannot be accepted", "correct the patch: only dangers are a matter of judgement"
    return "", None


def check_codes(codes: Iterable[str], verb: str, option: str) -> None:
    """Refuse codes of an option that do not exist, or that cannot be accepted."""
    for code in codes:
        problem, hint = _problem(code, verb)
        if problem:
            raise BadUsage(f"{option}: {problem}", hint=hint)


def without_ignored(findings: Iterable[Finding], patches: Sequence[Patch]) -> list[Finding]:
    """Return the findings that no comment of their patch ignores."""
    ignored = {
        (patch.source.name, line, each.code)
        for patch in patches
        for each in exceptions_in(patch)
        if each.verb == IGNORE
        for line in range(patch.source.line, patch.source.line + patch.source.text.count("\n") + 1)
    }
    return [each for each in findings if (each.file, each.position.line, each.error_class) not in ignored]


def with_exceptions(
    findings: Iterable[Finding],
    *,
    accepted: Collection[str] = (),
    disabled: Collection[str] = (),
    is_strict: bool = False,
) -> list[Finding]:
    """Return the findings as the options of a command want them.

    Dangers that it accepts are notes, rules that it disables are left out; if it is strict, warnings are errors.
    """
    return [_excepted(each, accepted, is_strict) for each in findings if each.error_class not in disabled]


def _excepted(finding: Finding, accepted: Collection[str], is_strict: bool) -> Finding:
    if finding.error_class in accepted and finding.severity is not Severity.NOTE:
        return replace(finding, severity=Severity.NOTE, message=f"{finding.message} (accepted)", hint=None)
    is_raised = is_strict and finding.severity is Severity.WARNING
    return replace(finding, severity=Severity.ERROR) if is_raised else finding
