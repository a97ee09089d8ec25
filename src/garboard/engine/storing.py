"""Plans as JSON and back, value for value, so that a run which was cut short goes on with the very same plan.

The engine knows its own actions. What phases ask for (requests, gates) they register, and values that are better kept
by name than by content, such as a certificate of the tree, come with an adapter.
"""

import base64
import enum
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Any, TypeAlias, get_args

from garboard.documents import Json
from garboard.engine.action import Action, Ending, Filling, IssuedFile, Outcome
from garboard.engine.before import BEFORE_TYPES
from garboard.engine.plan import Note, Plan, Step
from garboard.errors import BadDocument
from garboard.values import dataclass

_TAG = "$"  # the key that says of which type a mapping is
_OWN_TYPES: tuple[type, ...] = (
    Plan,
    Step,
    Note,
    Outcome,
    IssuedFile,
    Filling,
    Ending,
    *BEFORE_TYPES,
    *get_args(Action),
)


@dataclass(frozen=True, slots=True)
class Adapter:
    """How values of one type are kept as text."""

    kind: type
    to_text: Callable[[Any], str]
    from_text: Callable[[str], Any]


_ADAPTERS: tuple[Adapter, ...] = (
    Adapter(bytes, lambda value: base64.b64encode(value).decode(), base64.b64decode),
    Adapter(datetime, datetime.isoformat, datetime.fromisoformat),
    Adapter(timedelta, lambda value: str(value // timedelta(microseconds=1)), lambda text: _microseconds(text)),
    *(Adapter(kind, str, kind) for kind in (IPv4Address, IPv6Address, IPv4Network, IPv6Network)),
)


def _microseconds(text: str) -> timedelta:
    return timedelta(microseconds=int(text))


Registered: TypeAlias = type | Adapter


class PlanCodec:
    """Writes plans, and values that are made of the same parts, and reads them again."""

    def __init__(self, registered: Iterable[Registered] = ()) -> None:
        given = tuple(registered)
        adapters = (*_ADAPTERS, *(each for each in given if isinstance(each, Adapter)))
        types = (*_OWN_TYPES, *(each for each in given if not isinstance(each, Adapter)))
        self._adapters: Mapping[type, Adapter] = {each.kind: each for each in adapters}
        self._types: Mapping[str, type] = {each.__name__: each for each in types}
        self._named_adapters = {each.kind.__name__: each for each in adapters}

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

    def knows(self, kind: type) -> bool:
        return kind.__name__ in self._types or kind in self._adapters

    def encode(self, value: object) -> Json:
        """Return the value as JSON; one of a type that nobody registered is a mistake of the caller."""
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
            return {_TAG: adapter.kind.__name__, "of": adapter.to_text(value)}
        if isinstance(value, enum.Enum):
            return self._tagged(value, value.value)
        if not is_dataclass(value) or isinstance(value, type):
            raise TypeError(f"{type(value).__name__} cannot be kept in a journal")
        return self._tagged(value, {each.name: self.encode(getattr(value, each.name)) for each in fields(value)})

    def _tagged(self, value: object, content: Json) -> Json:
        name = type(value).__name__
        if self._types.get(name) is not type(value):
            raise TypeError(f"{name} is not registered, so a run that holds it could not be resumed")
        return {_TAG: name, "of": content}

    def decode(self, content: Json) -> object:
        if isinstance(content, list):
            return [self.decode(each) for each in content]
        if not isinstance(content, dict):
            return content
        if _TAG not in content:
            return {key: self.decode(each) for key, each in content.items()}
        return self._decode_tagged(str(content[_TAG]), content["of"])

    def _decode_tagged(self, name: str, of: Json) -> object:
        if name in ("tuple", "set"):
            return (tuple if name == "tuple" else frozenset)(self.decode(each) for each in _list(of))
        if name in self._named_adapters:
            return self._named_adapters[name].from_text(str(of))
        if name == "map":
            return self._decoded(of)
        kind = self._types[name]
        return kind(of) if issubclass(kind, enum.Enum) else kind(**self._decoded(of))

    def _decoded(self, of: Json) -> dict[str, object]:
        if not isinstance(of, dict):
            raise TypeError("a mapping was kept there")
        return {key: self.decode(each) for key, each in of.items()}


def _list(of: Json) -> list[Json]:
    if not isinstance(of, list):
        raise TypeError("a list was kept there")
    return of


def _unreadable(why: str) -> BadDocument:
    return BadDocument(
        f"the plan that this run kept cannot be read: {why}",
        hint="use the garboard that began the run, or clean the node up with garboard reset",
        error_class="bad-journal",
    )
