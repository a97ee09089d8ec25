"""Requests and plans as tests write them."""

from garboard.change.edits import FieldEdit
from garboard.change.plan import ChangePlan, NodeChange, PlannedAttribute
from garboard.change.planning import plan_change
from garboard.change.request import ChangeRequest, FieldEdits, GivenDocument, NewVersion, PartialChange
from garboard.change.request_documents import given_documents
from garboard.change.snapshot import ClusterSnapshot
from garboard.patches import PatchType
from garboard.values import Json


def sets(*edits: str) -> FieldEdits:
    """Return `--set` of each of them."""
    return FieldEdits(edits=tuple(map(FieldEdit.parse, edits)))


def unsets(*paths: str) -> FieldEdits:
    return FieldEdits(edits=tuple(map(FieldEdit.removal, paths)))


def patch(text: str, type_: PatchType = PatchType.STRATEGIC, **given: str) -> PartialChange:
    return PartialChange(documents=given_documents(text, source="patch.yaml"), type=type_, **given)


def new_version(*documents: Json) -> NewVersion:
    return NewVersion(documents=tuple(GivenDocument(content=each, source="new.yaml") for each in documents))


def planned(snapshot: ClusterSnapshot, request: ChangeRequest | str, *accepted: str) -> ChangePlan:
    """Return the plan of a request; text is one `--set`."""
    return plan_change(snapshot, sets(request) if isinstance(request, str) else request, accepted)


def restarts(plan: ChangePlan) -> dict[str, list[str]]:
    """Return which components restart on which node, in order."""
    found = {each.node: [name for step in each.steps for name in step.restarts] for each in plan.nodes}
    return {node: names for node, names in found.items() if names}


def order(plan: ChangePlan) -> list[str]:
    """Return nodes and objects in the order of work."""
    return [part.node if isinstance(part, NodeChange) else part.name for part in plan.parts]


def phases(plan: ChangePlan, node: str) -> list[str]:
    return [step.phase for each in plan.nodes if each.node == node for step in each.steps]


def attribute(plan: ChangePlan, label: str) -> PlannedAttribute:
    return next(each for each in plan.attributes if each.label == label)


def codes(plan: ChangePlan) -> list[str]:
    return [each.code for each in plan.attributes if each.code]
