"""Plans as JSON and back, value for value, so that an interrupted run is resumed with exactly the same plan.

Every type has a stable tag, so that a class may be renamed or moved while runs are open; format 1 of journals had the
names of classes instead, and `FORMAT_1` maps these to tags. The engine's own types are built in. Phases register their
requests and gates. A value that is better stored by name than by content, such as a certificate specification, has an
adapter.
"""

import base64
import enum
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Any, TypeAlias

from garboard.documents import Json
from garboard.engine.action import IssuedFile, NewerContent, SharedKey
from garboard.engine.cluster_plan import ClusterPart, ClusterPlan, NodePart
from garboard.engine.placeholder import ExpiryPlaceholder, FilePlaceholder, OutcomePlaceholder
from garboard.engine.plan import Note, Observation, Plan, Precondition, QuorumChange, Step
from garboard.engine.pre_image import FilePreImage, FolderPreImage, ObjectPreImage, OwnerPreImage, PreImage
from garboard.engine.traits import TRAITS
from garboard.errors import NotReady
from garboard.values import dataclass

_TAG = "$"  # the key that says of which type a mapping is


@dataclass(frozen=True, slots=True)
class Tagged:
    """A type whose values are stored member by member; `tag` is its name in journals and never changes."""

    tag: str
    kind: type
    format_1: str = ""  # the class name under which journals of format 1 know it


@dataclass(frozen=True, slots=True)
class Adapter:
    """How values of one type are stored as text."""

    tag: str
    kind: type
    to_text: Callable[[Any], str]
    from_text: Callable[[str], Any]


_TYPES: tuple[Tagged, ...] = (
    Tagged("plan", Plan, "Plan"),
    Tagged("step", Step, "Step"),
    Tagged("note", Note, "Note"),
    Tagged("precondition", Precondition),
    Tagged("quorum-change", QuorumChange),
    Tagged("observation", Observation),
    Tagged("cluster-plan", ClusterPlan),
    Tagged("node-part", NodePart),
    Tagged("cluster-part", ClusterPart),
    Tagged("outcome", OutcomePlaceholder, "Outcome"),
    Tagged("issued-file", IssuedFile, "IssuedFile"),
    Tagged("file-content", FilePlaceholder, "Filling"),
    Tagged("expiration", ExpiryPlaceholder, "Ending"),
    Tagged("shared-key", SharedKey),
    Tagged("newer-content", NewerContent),
    Tagged("file-before", FilePreImage, "FileBefore"),
    Tagged("owner-before", OwnerPreImage, "OwnerBefore"),
    Tagged("folder-before", FolderPreImage, "FolderBefore"),
    Tagged("object-before", ObjectPreImage, "ObjectBefore"),
    Tagged("before", PreImage, "Before"),
    *(Tagged(traits.tag, kind) for kind, traits in TRAITS.items()),
)
# Class names of actions in journals of format 1; actions that came later have none.
FORMAT_1: Mapping[str, str] = {
    "MakeFolder": "make-folder", "WriteFile": "write-file", "RemoveFile": "remove-file",
    "RemoveFolder": "remove-folder", "EmptyFolder": "empty-folder", "Unmount": "unmount",
    "ChangeOwner": "change-owner", "Issue": "issue",
    "PutObject": "put-object", "PatchObject": "patch-object", "DeleteObject": "delete-object",
    "ControlService": "control-service", "PullImage": "pull-image", "RemoveSandboxes": "remove-sandboxes",
    "AddMember": "add-member", "PromoteMember": "promote-member", "RemoveMember": "remove-member",
    "TakeTurn": "acquire-lease", "EndTurn": "release-lease", "AwaitGate": "wait", "Tell": "show-message",
}  # fmt: skip
_ADAPTERS: tuple[Adapter, ...] = (
    Adapter("bytes", bytes, lambda value: base64.b64encode(value).decode(), base64.b64decode),
    Adapter("datetime", datetime, datetime.isoformat, datetime.fromisoformat),
    Adapter(
        "timedelta", timedelta, lambda value: str(value // timedelta(microseconds=1)), lambda text: _microseconds(text)
    ),
    *(Adapter(kind.__name__, kind, str, kind) for kind in (IPv4Address, IPv6Address, IPv4Network, IPv6Network)),
)


def _microseconds(text: str) -> timedelta:
    return timedelta(microseconds=int(text))


Registered: TypeAlias = Tagged | Adapter


class PlanCodec:
    """Writes plans, and values that are made of the same parts, and reads them again."""

    def __init__(self, registered: Iterable[Registered] = ()) -> None:
        given = tuple(registered)
        types = (*_TYPES, *(each for each in given if isinstance(each, Tagged)))
        adapters = (*_ADAPTERS, *(each for each in given if isinstance(each, Adapter)))
        self._tags: Mapping[type, str] = {each.kind: each.tag for each in types}
        self._types: Mapping[str, type] = {each.tag: each.kind for each in types}
        self._adapters: Mapping[type, Adapter] = {each.kind: each for each in adapters}
        self._tagged_adapters = {each.tag: each for each in adapters}
        self._former = {**FORMAT_1, **{each.format_1: each.tag for each in types if each.format_1}}

    def plan_to_bytes(self, plan: Plan) -> bytes:
        return json.dumps(self.encode(plan), separators=(",", ":")).encode()

    def plan_from_bytes(self, data: bytes) -> Plan:
        try:
            plan = self.decode(json.loads(data))
        except (ValueError, KeyError, TypeError) as error:
            raise _unreadable(str(error)) from error
        if not isinstance(plan, Plan):
            raise _unreadable("it holds no plan")
        return plan

    def encode(self, value: object) -> Json:
        """Return the value as JSON; a value of an unregistered type is a bug of the caller."""
        if value is None or isinstance(value, bool | int | float | str):
            return value if not isinstance(value, enum.Enum) else self._tagged(value, value.value)
        if isinstance(value, list):
            return [self.encode(each) for each in value]
        if isinstance(value, tuple):
            return {_TAG: "tuple", "of": [self.encode(each) for each in value]}
        if isinstance(value, frozenset):
            return {_TAG: "set", "of": [self.encode(each) for each in sorted(value)]}
        if isinstance(value, dict):
            members = {str(key): self.encode(each) for key, each in value.items()}
            return {_TAG: "map", "of": members} if _TAG in members else members
        return self._encode_object(value)

    def _encode_object(self, value: object) -> Json:
        adapter = self._adapters.get(type(value))
        if adapter is not None:
            return {_TAG: adapter.tag, "of": adapter.to_text(value)}
        if isinstance(value, enum.Enum):
            return self._tagged(value, value.value)
        if not is_dataclass(value) or isinstance(value, type):
            raise TypeError(f"{type(value).__name__} cannot be kept in a journal")
        return self._tagged(value, {each.name: self.encode(getattr(value, each.name)) for each in fields(value)})

    def _tagged(self, value: object, content: Json) -> Json:
        tag = self._tags.get(type(value))
        if tag is None:
            raise TypeError(f"{type(value).__name__} is not registered, so a run that holds it could not be resumed")
        return {_TAG: tag, "of": content}

    def decode(self, content: Json) -> object:
        if isinstance(content, list):
            return [self.decode(each) for each in content]
        if not isinstance(content, dict):
            return content
        if _TAG not in content:
            return {key: self.decode(each) for key, each in content.items()}
        return self._decode_tagged(str(content[_TAG]), content["of"])

    def _decode_tagged(self, tag: str, of: Json) -> object:
        if tag in ("tuple", "set"):
            return (tuple if tag == "tuple" else frozenset)(self.decode(each) for each in _list(of))
        tag = self._former.get(tag, tag)
        if tag in self._tagged_adapters:
            return self._tagged_adapters[tag].from_text(str(of))
        if tag == "map":
            return self._members(of)
        kind = self._types[tag]
        if issubclass(kind, enum.Enum):
            return kind(of)
        # Members that a later release has added are left out: they have a default there, or a format of their own.
        known = {each.name for each in fields(kind)}  # type: ignore[arg-type]
        return kind(**{name: value for name, value in self._members(of).items() if name in known})

    def _members(self, of: Json) -> dict[str, object]:
        if not isinstance(of, dict):
            raise TypeError("a mapping was kept there")
        return {key: self.decode(each) for key, each in of.items()}


def _list(of: Json) -> list[Json]:
    if not isinstance(of, list):
        raise TypeError("a list was kept there")
    return of


def _unreadable(why: str) -> NotReady:
    return NotReady(
        f"the plan that this run kept cannot be read: {why}",
        hint="use the garboard that began the run; or garboard runs forget leaves the node as it is, and garboard "
        "reset cleans it up",
        error_class="bad-journal",
    )
