"""Preconditions: the files that a plan replaces or removes, as planning found them.

A plan is stale once they have changed.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from garboard.engine.action import Action
from garboard.engine.plan import Plan, Precondition, Step
from garboard.engine.pre_image import FileView, digest_of
from garboard.engine.traits import traits_of
from garboard.values import dataclass


@dataclass(frozen=True, slots=True)
class CheckedFiles:
    """The files that a step has preconditions about: their digests (empty: absent), and in words which do not hold."""

    found: Mapping[str, str]
    moved: tuple[str, ...] = ()


def with_preconditions(plan: Plan, digest: Callable[[str], str]) -> Plan:
    """Return the plan with the preconditions of its steps; `digest` is that of a file as planning found it, or empty.

    A file that an earlier step changes has none: what is there by then is the work of the run itself.
    """
    changed: set[str] = set()
    steps: list[Step] = []
    for step in plan.steps:
        traits = traits_of(step.action)
        written = traits.writes(step.action)
        judged = (path for path in (*written, *traits.removes(step.action)) if not _is_within(path, changed))
        steps.append(_expecting(step, judged, digest))
        changed.update(written, traits.changes(step.action))
    return replace(plan, steps=tuple(steps))


def expecting(steps: Iterable[Step], paths: Collection[str], digest: Callable[[str], str]) -> tuple[Step, ...]:
    """Return steps of which those that write or remove one of the files have preconditions, as they are now."""
    found = []
    for step in steps:
        traits = traits_of(step.action)
        judged = (*traits.writes(step.action), *traits.removes(step.action))
        found.append(_expecting(step, (path for path in judged if path in paths), digest))
    return tuple(found)


def _expecting(step: Step, paths: Iterable[str], digest: Callable[[str], str]) -> Step:
    return replace(step, preconditions=(*step.preconditions, *(Precondition(path, digest(path)) for path in paths)))


def _is_within(path: str, changed: Iterable[str]) -> bool:
    return any(path == each or path.startswith(f"{each}/") for each in changed)


def check_files(step: Step, files: FileView, facts: Sequence[Mapping[str, str]] | None = None) -> CheckedFiles:
    """Return the files that a step is about to write, and which of its preconditions do not hold.

    `facts` are given for a step that has begun before, as its attempts recorded them: what the step has written itself
    does not count.
    """
    digests: dict[str, str] = {}
    moved: list[str] = []
    for each in step.preconditions:
        found = files.read(each.path)
        digests[each.path] = "" if found is None else digest_of(found)
        is_gone_anyway = found is None and each.path in traits_of(step.action).removes(step.action)
        if digests[each.path] == each.sha256 or is_gone_anyway:
            continue
        if facts is not None and _is_own_work(step.action, each.path, found, facts):
            continue
        event = "has gone" if found is None else "has changed" if each.sha256 else "has been made"
        moved.append(f"{each.path} {event} since (phase {step.phase})")
    return CheckedFiles(digests, tuple(moved))


def what_moved_since(plan: Plan, look: Callable[[str], str]) -> Iterator[str]:
    """Yield what is not as planning found it, in words; `look` returns the digest that something has now, or none."""
    for each in plan.observed:
        found = look(each.name)
        if found != each.digest:
            event = "has gone" if not found else "has changed" if each.digest else "has been made"
            yield f"{each.name} {event} since the plan was made"


def _is_own_work(action: Action, path: str, found: bytes | None, facts: Sequence[Mapping[str, str]]) -> bool:
    """Say whether a step that was interrupted may have made a file what it is, or removed it."""
    traits = traits_of(action)
    return path in traits.changes(action) if found is None else traits.wrote(action, path, found, facts)
