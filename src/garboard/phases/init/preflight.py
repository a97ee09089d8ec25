"""`init phase preflight`: whether the machine can become the first control-plane node, and the images for it."""

from collections.abc import Iterable, Iterator

from garboard.engine import Note, Step
from garboard.phases.init.context import InitContext
from garboard.phases.preflight import Check, Exam, Verdict, control_plane_checks, examine, judge, plan_images
from garboard.phases.preflight.checks import privileged_user


def plan_preflight(context: InitContext) -> Iterator[Step | Note]:
    """Refuse a machine that is not ready, and plan to pull images; a plan that is only shown tells what is wrong."""
    exam, config = context.exam, context.config
    if exam is None:
        return
    ignored = context.ignored_checks
    checks = control_plane_checks(config.cluster, config.local_api_endpoint, config.node_registration)
    verdict = verdict_of(checks, exam, ignored)
    if not context.is_only_shown:
        verdict.refuse()
    yield from notes_of(verdict)
    if verdict.errors:
        return  # a runtime that is not there would only be told twice
    yield from plan_images(config.cluster, config.node_registration, exam, ignored)


def verdict_of(checks: Iterable[Check], exam: Exam, ignored: Iterable[str]) -> Verdict:
    """Make the checks; without being root nothing else is looked at, for it would be seen wrongly."""
    names = tuple(ignored)
    first = judge(examine((privileged_user(),), exam), names)
    return first if first.errors else judge(examine(checks, exam), names)


def notes_of(verdict: Verdict) -> Iterator[Note]:
    """Yield what is to be told of a machine that may be used all the same."""
    for each in (*verdict.errors, *verdict.warnings):
        yield Note(f"[{each.check}] {each.text}", is_warning=True)
