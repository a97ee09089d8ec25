"""A plan as text for people: what is asked for, what speaks against it, the work in its order, what is left."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from garboard.change.codes import Weight
from garboard.change.document import digest_of
from garboard.change.plan import ChangePlan, NodeChange, PlannedAttribute, PlannedObject, PlannedStep
from garboard.documents import without_passwords
from garboard.values import Json

_VERDICTS = {
    "none": "nothing to do: the cluster is as it is asked for",
    "allowed": "allowed: nothing speaks against it",
    "advice": "advice: it can be done; read what is said about it",
    "blocked": "blocked: nothing is done while this stands",
}
_MOST_NAMES = 6


def plan_text(plan: ChangePlan) -> str:
    """Return the plan as lines of text, without passwords of URLs."""
    lines = [_VERDICTS[plan.verdict]]
    if plan.attributes:
        lines += ["", "Changes:", *(line for each in plan.attributes for line in _attribute_lines(each))]
    if plan.parts:
        lines += ["", "Work, in this order:", *_work_lines(plan)]
    if plan.unconfirmed and not plan.is_blocked:
        lines += ["", f"To carry this out, accept it: --accept {','.join(plan.unconfirmed)}"]
    if plan.follow_ups:
        lines += ["", "Left for you to do:", *(f"  - {each}" for each in plan.follow_ups)]
    lines += ["", _summary(plan)]
    return without_passwords("\n".join(lines) + "\n")


def is_shown_alike(plan: ChangePlan, other: ChangePlan) -> bool:
    """Whether two plans do the same as far as a reader is shown, whatever they were made from."""
    return _shown_work(plan) == _shown_work(other)


def _shown_work(plan: ChangePlan) -> tuple[str, list[str]]:
    # Of many nodes that do the same, the text names the first and the last.
    nodes = [each.node for each in plan.parts if isinstance(each, NodeChange)]
    return plan_text(replace(plan, observed=())), nodes


def _attribute_lines(each: PlannedAttribute) -> Iterator[str]:
    code = f" [{each.code}]" if each.code else ""
    yield f"  {each.label}: {_shown(each.before)} -> {_shown(each.after)}"
    yield f"    {each.verdict}{code}: {each.reason}"
    if each.route:
        first, *rest = each.route.splitlines()
        yield f"    {'instead' if each.weight is Weight.REFUSED else 'to do'}: {first}"
        yield from (f"      {line}" for line in rest)


def _shown(value: Json) -> str:
    if value is None:
        return "(not set)"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


def _work_lines(plan: ChangePlan) -> Iterator[str]:
    for number, group in enumerate(_groups(plan.parts), start=1):
        first = group[0]
        if isinstance(first, PlannedObject):
            yield f"  {number}. {first.kind} {first.namespace}/{first.name}  # {first.cause}"
            yield from _diff_lines(first.diff)
        else:
            names = [each.node for each in group if isinstance(each, NodeChange)]
            yield f"  {number}. {_names(names)}"
            for step in first.steps:
                yield from _step_lines(step)


def _groups(parts: Sequence[NodeChange | PlannedObject]) -> Iterator[list[NodeChange | PlannedObject]]:
    """Yield parts, with nodes that follow each other and do the same as one group."""
    group: list[NodeChange | PlannedObject] = []
    for part in parts:
        if group and not (isinstance(part, NodeChange) and _work_of(part) == _work_of(group[-1])):
            yield group
            group = []
        group.append(part)
    if group:
        yield group


def _work_of(part: NodeChange | PlannedObject) -> object:
    """Return what makes the work of two nodes the same for a reader: only what changes in the files counts."""
    if isinstance(part, PlannedObject):
        return part
    return [
        (step.phase, step.title.replace(part.node, ""), step.cause, step.restarts,
         [(file.path, file.is_assumed, _changed_lines(file.diff)) for file in step.files])
        for step in part.steps
    ]  # fmt: skip


def _changed_lines(diff: str) -> list[str]:
    return [line for line in diff.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]


def _names(names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"node {names[0]}"
    if len(names) <= _MOST_NAMES:
        return f"nodes {', '.join(names)}, one after the other"
    return f"{len(names)} nodes, {names[0]} to {names[-1]}, one after the other"


def _step_lines(step: PlannedStep) -> Iterator[str]:
    restarts = f", restarts {', '.join(step.restarts)}" if step.restarts else ""
    yield f"     [{step.phase}] {step.title}{restarts}  # {step.cause}"
    for file in step.files:
        assumed = "  (not seen: assumed to be as rendered)" if file.is_assumed else ""
        yield f"       {file.path}{assumed}"
        yield from (f"         {line}" for line in _changed_lines(file.diff) or file.diff.splitlines())


def _diff_lines(diff: str) -> Iterator[str]:
    yield from (f"       {line}" for line in _changed_lines(diff))


def _summary(plan: ChangePlan) -> str:
    restarts = Counter(name for part in plan.nodes for step in part.steps for name in step.restarts)
    told = ", ".join(f"{name} on {count} {_plural(count, 'node')}" for name, count in restarts.items())
    nodes, objects = len(plan.nodes), len(plan.objects)
    work = f"{nodes} {_plural(nodes, 'node')}, {objects} {_plural(objects, 'object')}"
    return f"plan: {plan.verdict}; {work}; restarts: {told or 'none'}; observed {digest_of(plan)[:23]}"


def _plural(count: int, word: str) -> str:
    return word if count == 1 else f"{word}s"
