"""A plan as a document of change.garboard.dev/v1alpha1, kind ChangePlan (docs/change.md has every field).

Passwords of URLs are hidden in it, because plans are passed around.
"""

from garboard.change.plan import API_VERSION, KIND, ChangePlan, NodeChange, PlannedAttribute, PlannedObject, PlannedStep
from garboard.documents import document_without_passwords
from garboard.engine import Plan
from garboard.values import Json


def digest_of(plan: ChangePlan) -> str:
    """Return the digest of what the plan was made from."""
    return f"sha256:{Plan(observed=plan.observed).observed_digest}"


def plan_document(plan: ChangePlan) -> dict[str, Json]:
    """Return the plan as plain data; equal plans give equal data."""
    document: dict[str, Json] = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "verdict": plan.verdict,
        "digest": digest_of(plan),
        "attributes": [_attribute(each) for each in plan.attributes],
        "nodes": [{"node": each.node, "steps": [_step(step) for step in each.steps]} for each in plan.nodes],
        "objects": _objects(plan),
        "followUps": [*plan.follow_ups],
    }
    if plan.corrects:
        document["corrects"] = [*plan.corrects]
    return {key: document_without_passwords(value) for key, value in document.items()}


def _attribute(each: PlannedAttribute) -> Json:
    return {
        "path": each.label,
        "from": each.before,
        "to": each.after,
        "verdict": each.verdict,
        "code": each.code,
        "reason": each.reason,
        "route": each.route,
    }


def _step(step: PlannedStep) -> Json:
    return {
        "phase": step.phase,
        "title": step.title,
        "cause": step.cause,
        "files": [{"path": each.path, "diff": each.diff, "assumed": each.is_assumed} for each in step.files],
        "restarts": [*step.restarts],
    }


def _objects(plan: ChangePlan) -> list[Json]:
    """Return the objects, each with the last node that is done before it is written."""
    found: list[Json] = []
    last = ""
    for part in plan.parts:
        if isinstance(part, NodeChange):
            last = part.node
        else:
            found.append(_object(part, last))
    return found


def _object(part: PlannedObject, after: str) -> Json:
    return {
        "kind": part.kind,
        "namespace": part.namespace,
        "name": part.name,
        "cause": part.cause,
        "diff": part.diff,
        "after": after,
    }
