"""Plans for readers: as text and as JSON. Secrets are shown by their digest, keys are not in a plan at all."""

from collections.abc import Iterator

from garboard.documents import Json
from garboard.engine.action import Action
from garboard.engine.cluster_plan import ClusterPlan, NodePart
from garboard.engine.plan import Plan, Precondition, QuorumChange, Step
from garboard.engine.trait import given
from garboard.engine.traits import point_of_no_return, traits_of

_INDENT = "    "


def plan_as_json(plan: Plan) -> Json:
    """Return the plan as a document."""
    no_return = point_of_no_return(plan.steps)
    return {
        "steps": [
            {
                "phase": step.phase,
                "node": step.node,
                "cause": step.cause,
                **({"unit": step.unit} if step.unit else {}),
                "action": _action_document(step.action),
                **given(restarts=[*step.restarts], quorumAfter=_quorum_document(step.quorum_after)),
                **({"pointOfNoReturn": True} if index == no_return else {}),
                **_preconditions_document(step.preconditions),
            }
            for index, step in enumerate(plan.steps)
        ],
        "notes": [{"phase": note.phase, "text": note.text, "warning": note.is_warning} for note in plan.notes],
        **_observed_document(plan),
    }


def _observed_document(plan: Plan) -> dict[str, Json]:
    if not plan.observed:
        return {}
    rows: list[Json] = [
        {"name": each.name, **({"digest": each.digest} if each.digest else {"absent": True})} for each in plan.observed
    ]
    return {"observed": {"sha256": plan.observed_digest, "of": rows}}


def _action_document(action: Action) -> dict[str, Json]:
    traits = traits_of(action)
    return {"type": traits.type(action) if traits.type else traits.tag, **traits.document(action)}


def _preconditions_document(preconditions: tuple[Precondition, ...]) -> dict[str, Json]:
    rows: list[Json] = [
        {"path": each.path, **({"sha256": each.sha256} if each.sha256 else {"absent": True})} for each in preconditions
    ]
    return {"preconditions": rows} if rows else {}


def _quorum_document(quorum: QuorumChange | None) -> dict[str, Json]:
    if quorum is None:
        return {}
    if not quorum.voters_before:
        return {"votersAdded": quorum.voters, "upAdded": quorum.up}
    voters, up = quorum.voters_before + quorum.voters, quorum.voters_before + quorum.up
    return {"voters": voters, "up": up, "needed": quorum.needed}


def _quorum_text(quorum: QuorumChange) -> str:
    """Say how many members of etcd vote and are up; where their number is not known, how it changes."""
    if quorum.voters_before:
        voters, up = quorum.voters_before + quorum.voters, quorum.voters_before + quorum.up
        return f"etcd: {up} of {voters} voting members up, {quorum.needed} needed"
    if not quorum.voters and not quorum.up:
        return "etcd: as many voting members as before"
    return f"etcd: voting members {quorum.voters:+d}, up {quorum.up:+d}"


def step_title(step: Step) -> str:
    """Say in one line what a step does."""
    return traits_of(step.action).title(step.action)


def plan_as_text(plan: Plan) -> str:
    """Return the plan for people: a line for each step with its cause, and below it what will be written."""
    lines = [f"[{note.phase}] {'warning: ' if note.is_warning else ''}{note.text}" for note in plan.notes]
    no_return = point_of_no_return(plan.steps)
    for index, step in enumerate(plan.steps):
        because = f"  # {step.cause}" if step.cause else ""
        lines.append(f"[{step.phase}] {step_title(step)}{because}")
        lines += [_INDENT + line for line in (*_effects(step), *traits_of(step.action).details(step.action))]
        if index == no_return:
            lines.append(f"{_INDENT}point of no return: nobody can bring back {traits_of(step.action).loses}")
    if plan.observed:
        lines.append(f"observed: {len(plan.observed)} files and objects, sha256:{plan.observed_digest[:16]}")
    lines.append(_summary(plan))
    return "\n".join(lines) + "\n"


def cluster_plan_as_json(plan: ClusterPlan) -> Json:
    """Return a cluster plan as a document; what goes by standard input is not shown."""
    parts: list[Json] = [
        {"node": part.node, "command": " ".join(part.words), "plan": plan_as_json(part.plan)}
        if isinstance(part, NodePart)
        else {"cluster": part.name, "plan": plan_as_json(part.plan)}
        for part in plan.parts
    ]
    return {"parts": parts}


def cluster_plan_as_text(plan: ClusterPlan) -> str:
    """Return a cluster plan for people: its parts in order, each with its plan."""
    texts = [
        f"{number}. {part.title}{': garboard ' + ' '.join(part.words) if isinstance(part, NodePart) else ''}\n"
        + "".join(f"{_INDENT}{line}\n" for line in plan_as_text(part.plan).splitlines())
        for number, part in enumerate(plan.parts, start=1)
    ]
    return "".join(texts)


def _effects(step: Step) -> Iterator[str]:
    if step.restarts:
        yield f"restarts {', '.join(step.restarts)}"
    if step.quorum_after is not None:
        yield _quorum_text(step.quorum_after)


def _summary(plan: Plan) -> str:
    if not plan.steps:
        return "plan: nothing to do"
    nodes = sorted({step.node for step in plan.steps if step.node})
    where = f" on {', '.join(nodes)}" if nodes else ""
    return f"plan: {len(plan.steps)} {'step' if len(plan.steps) == 1 else 'steps'}{where}"
