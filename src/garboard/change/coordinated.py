"""A change as a coordinator hands it to the node where it begins: by standard input, for it may hold what is secret."""

import base64
import json
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from garboard.change.confirming import ConfirmTimes
from garboard.change.document import plan_document
from garboard.change.drift_names import DriftNames
from garboard.change.drift_request import AskedChange, DriftRequest
from garboard.change.plan import ChangePlan
from garboard.change.record import state_of
from garboard.change.request import DriftAdoption, NewPatchSet, RecordedState
from garboard.change.rollout import ChangeIntent, Rollout
from garboard.change.saved_plan import SavedPlan
from garboard.change.snapshot import ClusterSnapshot
from garboard.engine import ClusterPlan, NodePart
from garboard.errors import BadDocument
from garboard.phases.node.records import PatchSetContent
from garboard.values import dataclass

# `-` is the change on standard input.
APPLY_WORDS = ("change", "apply", "-", "--coordinated", "--yes")
NODE_WORDS = ("change", "node", "--yes")


class _Adopted(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Hand edits that are recorded, as they were seen."""

    documents: dict[str, dict[str, Any]]
    patch_sets: dict[str, str]
    contents: dict[str, dict[str, str]]  # files in base64 by path, by digest

    @classmethod
    def of(cls, request: DriftAdoption) -> "_Adopted":
        return cls(
            documents={kind: dict(document) for kind, document in request.documents.items()},
            patch_sets=dict(request.patch_sets),
            contents={digest: _as_text(content) for digest, content in request.contents.items()},
        )

    def request(self) -> DriftAdoption:
        contents = {digest: _from_text(files) for digest, files in self.contents.items()}
        return DriftAdoption(documents=self.documents, patch_sets=self.patch_sets, contents=contents)


class _Handed(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True
):
    """The document on standard input."""

    plan: dict[str, Any]
    observed: dict[str, str]
    texts: dict[str, str]
    patch_sets: dict[str, str] | None = None
    patches: dict[str, str] | None = None  # in base64, by path
    author: str = ""
    message: str = ""
    request: str = ""
    accepted: list[str] = []
    drains: bool = False
    confirm_within_seconds: int = 0
    rollout_within_seconds: int = 0
    revert_slot_seconds: int = 0
    drift: Literal["fail", "keep", "adopt", "overwrite"] = "fail"
    corrects: list[str] = []  # which hand edits go: each node finds its own
    adopts: _Adopted | None = None
    replaces_unfinished: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatedChange:
    """A change that another machine has planned, with the plan that is expected."""

    saved: SavedPlan
    request: AskedChange
    intent: ChangeIntent
    replaces_unfinished: bool = False  # it takes the place of one that nodes have not followed yet


def _as_text(content: PatchSetContent) -> dict[str, str]:
    return {path: base64.b64encode(data).decode() for path, data in content.files.items()}


def _from_text(files: Mapping[str, str]) -> PatchSetContent:
    return PatchSetContent({path: base64.b64decode(text, validate=True) for path, text in files.items()})


def handed_change(
    rollout: Rollout, request: AskedChange, expected: ChangePlan, *, replaces_unfinished: bool = False
) -> bytes:
    """Return a change for the node where it begins; `expected` is the plan as it is made without files of nodes."""
    state, intent = state_of(rollout.revision), rollout.intent
    recorded = request.patch_sets if isinstance(request, RecordedState) else None
    document = _Handed(
        plan=json.loads(json.dumps(plan_document(expected))),
        observed={each.name: each.digest for each in expected.observed},
        texts=dict(state.texts),
        patch_sets=None if recorded is None else dict(recorded),
        patches=_as_text(request.content) if isinstance(request, NewPatchSet) else None,
        author=intent.author,
        message=intent.message,
        request=intent.request,
        accepted=[*intent.accepted],
        drains=intent.drains,
        confirm_within_seconds=intent.confirm.confirm_s,
        rollout_within_seconds=intent.confirm.rollout_s,
        revert_slot_seconds=intent.confirm.slot_s,
        drift=intent.drift,
        corrects=[*request.names.texts] if isinstance(request, DriftRequest) else [],
        adopts=_Adopted.of(request) if isinstance(request, DriftAdoption) else None,
        replaces_unfinished=replaces_unfinished,
    )
    return msgspec.json.encode(document)


def read_handed(data: bytes) -> CoordinatedChange:
    """Read what a coordinator has handed over."""
    try:
        found = msgspec.json.decode(data, type=_Handed)
        request = _request(found)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise BadDocument(
            f"standard input holds no change of a coordinator: {error}",
            hint="--coordinated is for garboard change apply --via, which hands the change over",
            error_class="bad-plan",
        ) from error
    intent = ChangeIntent(
        author=found.author,
        message=found.message,
        request=found.request,
        accepted=tuple(found.accepted),
        confirm=ConfirmTimes(
            confirm_s=found.confirm_within_seconds,
            rollout_s=found.rollout_within_seconds,
            slot_s=found.revert_slot_seconds,
        ),
        drift=found.drift,
        drains=found.drains,
    )
    saved = SavedPlan(found.plan, "the coordinator's plan", found.observed)
    return CoordinatedChange(saved=saved, request=request, intent=intent, replaces_unfinished=found.replaces_unfinished)


def _request(found: _Handed) -> AskedChange:
    if found.corrects:
        return DriftRequest(policy="overwrite", names=DriftNames.parse(found.corrects))
    if found.adopts is not None:
        return found.adopts.request()
    if found.patches is not None:
        return NewPatchSet(content=_from_text(found.patches))
    return RecordedState(texts=found.texts, patch_sets=found.patch_sets, source="the coordinator's change")


def begins_on(plan: ChangePlan, snapshot: ClusterSnapshot, first: str) -> str:
    """Return the control plane where a plan begins: the one that is meant, unless others alone have something to do."""
    control_planes = {each.name for each in snapshot.control_planes}
    touched = [each.node for each in plan.nodes if each.node in control_planes]
    return touched[0] if touched and first not in touched else first


def coordinated_plan(rollout: Rollout, handed: bytes) -> ClusterPlan:
    """Return which node is told what: where it begins, those that follow in order, and who says that all is done.

    A control plane that comes last says so itself; after a worker, the first node does.
    """
    first = NodePart(node=rollout.here, words=APPLY_WORDS, stdin=handed)
    others = [NodePart(node=name, words=NODE_WORDS) for name in rollout.others]
    last = rollout.snapshot.node(rollout.nodes[-1]) if others else None
    says_so = last is None or last.is_control_plane
    return ClusterPlan((first, *others, *([] if says_so else [NodePart(node=rollout.here, words=NODE_WORDS)])))
