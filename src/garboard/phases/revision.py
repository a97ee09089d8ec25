"""Revisions: what a cluster was configured as, which of them is its target, and what each node reports of that.

A revision is an immutable, numbered ConfigMap of kube-system. One ConfigMap with a fixed name says which revision is
the target, and how far it has come. A node reports by an annotation of its own Node: that is all a worker may write.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Literal, Self, TypeAlias, TypeVar

import msgspec

from garboard.documents import Json
from garboard.engine import PatchObject
from garboard.errors import BadDocument, GarboardError
from garboard.manifests.objects import KUBE_SYSTEM, ClusterObject, config_map
from garboard.values import dataclass

REVISION_PREFIX, TARGET, ROLE = "garboard-revision-", "garboard-change", "garboard:change"
REVISION_KEY, TARGET_KEY = "revision", "target"
LABEL, LABELLED = "garboard.dev/revision", "true"  # by which revisions are listed
REPORT = "garboard.dev/change"  # the annotation of a Node: REVISION:DIGEST:RESULT:TIME
KEPT = 10
MAX_BYTES = 512 * 1024  # of each object, which names every node; a ConfigMap takes 1 MiB
BASELINE = 0
TOO_LARGE = "too-large"

ChangeState: TypeAlias = Literal["pending", "canary", "rolling", "committed", "reverting", "reverted"]
# `confirmed`: done, and nothing on the node will take it back any more.
ReportResult: TypeAlias = Literal["pending", "done", "failed", "confirmed", "reverted"]
_REPORT_RESULTS: tuple[ReportResult, ...] = ("pending", "done", "failed", "confirmed", "reverted")
_NEXT: Mapping[ChangeState, tuple[ChangeState, ...]] = {
    "pending": ("canary", "reverting", "reverted"),
    "canary": ("rolling", "committed", "reverting", "reverted"),
    "rolling": ("committed", "reverting", "reverted"),
    "committed": ("reverting", "reverted"),
    "reverting": ("reverted",),
    "reverted": (),
}


class _Recorded(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True
):
    """What is written into a ConfigMap under one key, as JSON; what a later release has added is refused."""


class Revision(_Recorded, frozen=True, kw_only=True):
    """What a cluster was configured as, who wanted that, and why; it never changes.

    `base` is the newest revision that all nodes had when this one was made: its parent, unless that is unfinished.
    """

    number: int
    created: str = ""  # RFC 3339; if nothing is written, it is when the object was made
    kubernetes_version: str
    documents: dict[str, str]  # what the ConfigMaps of the configuration hold, by their names
    patch_sets: dict[str, str] = {}  # digests in garboard-patches, by the names of nodes
    parent: int | None = None
    base: int = BASELINE
    author: str = ""
    message: str = ""
    request: str = ""  # what was asked for, as it was typed
    accepted: list[str] = []  # the codes that were accepted for it
    drift: Literal["fail", "keep", "adopt", "overwrite"] = "fail"  # what becomes of flags that were typed in by hand
    corrects: list[str] = []  # which hand edits go with it, if that is all that it does
    drains: bool = False  # every node whose kubelet restarts, and not those alone that have to be

    @property
    def name(self) -> str:
        return revision_name(self.number)

    @property
    def digest(self) -> str:
        """The digest of what nodes are made from: equal configurations have equal ones."""
        content = [self.kubernetes_version, self.documents, self.patch_sets]
        return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()

    def as_object(self) -> ClusterObject:
        """Return the ConfigMap that holds it; one that is too large for etcd is refused."""
        data = {REVISION_KEY: _text(self, f"revision {self.number}")}
        found = config_map(self.name, KUBE_SYSTEM, data, labels={LABEL: LABELLED})
        found.content["immutable"] = True
        return found


class ChangeTarget(_Recorded, frozen=True, kw_only=True):
    """Which revision a cluster is on its way to, and how far it has come; `nodes` have something to do, in order."""

    revision: int
    digest: str
    state: ChangeState = "pending"
    parent: int = BASELINE
    canary: str = ""
    nodes: list[str] = []
    author: str = ""
    started_at: str = ""  # RFC 3339
    changed_at: str = ""
    # Of changes that wait to be confirmed: for how long, until when (known once the last node is green), and whether.
    confirm_within_seconds: int = 0
    armed_until: str = ""  # the same for all nodes: no node goes back before, and each does after it
    confirm_by: str = ""
    confirmed: bool = False
    revert_slot_seconds: int = 120

    @property
    def is_settled(self) -> bool:
        """Whether nothing is left to do, whatever nodes report, and nobody has to confirm it."""
        return self.state == "reverted" or (self.state == "committed" and not self.is_unconfirmed)

    @property
    def is_unconfirmed(self) -> bool:
        return bool(self.confirm_within_seconds) and not self.confirmed and self.state != "reverted"

    def moved(self, state: ChangeState, now: datetime, **more: Any) -> "ChangeTarget":
        """Return the target in another state; a state that cannot follow is a mistake of ours."""
        if state != self.state and state not in _NEXT[self.state]:
            raise GarboardError(f"revision {self.revision} is {self.state}, and cannot become {state}")
        return msgspec.structs.replace(self, state=state, changed_at=moment(now), **more)

    def as_object(self) -> ClusterObject:
        return config_map(TARGET, KUBE_SYSTEM, {TARGET_KEY: _text(self, f"the target, revision {self.revision},")})


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReport:
    """What a node says of a revision; its text is the value of the annotation `REPORT`."""

    revision: int
    digest: str
    result: ReportResult
    at: str  # RFC 3339

    def __str__(self) -> str:
        return f"{self.revision}:{self.digest}:{self.result}:{self.at}"

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Return what a text reports; None for one that nobody of us has written: anybody may annotate a Node."""
        number, _, rest = text.partition(":")
        digest, _, rest = rest.partition(":")
        result, _, at = rest.partition(":")
        known = next((each for each in _REPORT_RESULTS if each == result), None)
        if known is None or not (number.isascii() and number.isdigit()) or not at:
            return None
        return cls(revision=int(number), digest=digest, result=known, at=at)

    @classmethod
    def of_node(cls, node: Mapping[str, Json] | None) -> Self | None:
        """Return what a Node has been annotated with."""
        metadata = node.get("metadata") if node else None
        annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
        found = annotations.get(REPORT) if isinstance(annotations, dict) else None
        return cls.parse(found) if isinstance(found, str) else None

    def says(self, target: ChangeTarget) -> ReportResult | None:
        """Return the result, if the report is about this very target."""
        return self.result if (self.revision, self.digest) == (target.revision, target.digest) else None

    def as_patch(self, node_name: str) -> PatchObject:
        """Return the action that writes the report; a kubelet may do that on its own Node."""
        content: Json = {"metadata": {"annotations": {REPORT: str(self)}}}
        return PatchObject(api_version="v1", kind="Node", name=node_name, content=content)


def moment(now: datetime) -> str:
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def revision_name(number: int) -> str:
    return f"{REVISION_PREFIX}{number}"


def revision_number(name: str) -> int | None:
    """Return the number of the revision that a ConfigMap holds by its name, if it is one."""
    digits = name.removeprefix(REVISION_PREFIX)
    return int(digits) if name.startswith(REVISION_PREFIX) and digits.isascii() and digits.isdigit() else None


def superseded(numbers: Iterable[int], *, keeps: Iterable[int], limit: int = KEPT) -> tuple[int, ...]:
    """Return the oldest revisions, which go when there are more than `limit`; those of `keeps` stay."""
    needed = frozenset(keeps)
    known = sorted(set(numbers))
    spare = [each for each in known if each not in needed]
    return tuple(spare[: max(0, len(known) - limit)])


def read_revision(document: Mapping[str, Json]) -> Revision:
    """Return the revision that a ConfigMap holds; one that says something else is refused."""
    found = _read(document, REVISION_KEY, Revision)
    metadata = document.get("metadata")
    made = metadata.get("creationTimestamp") if isinstance(metadata, dict) else None
    return found if found.created or not isinstance(made, str) else msgspec.structs.replace(found, created=made)


def read_target(document: Mapping[str, Json] | None) -> ChangeTarget | None:
    """Return the target that a ConfigMap holds; None if there is no ConfigMap, and nothing was ever changed."""
    return None if document is None else _read(document, TARGET_KEY, ChangeTarget)


_RecordedT = TypeVar("_RecordedT", bound=_Recorded)


def _read(document: Mapping[str, Json], key: str, kind: type[_RecordedT]) -> _RecordedT:
    metadata, data = document.get("metadata"), document.get("data")
    name = metadata.get("name") if isinstance(metadata, dict) else "?"
    text = data.get(key) if isinstance(data, dict) else None
    try:
        return msgspec.json.decode(text if isinstance(text, str) else "", type=kind)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise BadDocument(
            f"ConfigMap kube-system/{name}: its key {key} cannot be read: {error}",
            hint="it may be of a later release: garboard version, on this machine and where the change was begun",
            error_class="bad-revision",
        ) from error


def _text(recorded: _Recorded, what: str) -> str:
    text = msgspec.json.encode(recorded, order="sorted")
    if len(text) > MAX_BYTES:
        raise BadDocument(
            f"{what} takes {len(text) // 1024} KiB, and a cluster keeps {MAX_BYTES // 1024} KiB of each at most",
            hint="configuration of this size belongs into files that flags name, or into patches",
            error_class=TOO_LARGE,
        )
    return text.decode()
