"""YAML events to a JSON tree: keys, merges, aliases and their limits as in go-yaml v2 and sigs.k8s.io/yaml.

Nothing here recurses over open nodes, so no document can exhaust the stack.
"""

import math
from functools import lru_cache
from typing import Any, Final, NoReturn

from yaml.events import AliasEvent, CollectionStartEvent, Event, MappingStartEvent, ScalarEvent

from garboard.documents.json_value import DEPTH_HINT, MAX_DEPTH, Json
from garboard.documents.yaml_scalars import Impossible, Scalar, as_key, as_value, resolve, resolve_tagged

_MERGE_TAG: Final = "tag:yaml.org,2002:merge"
# What a mapping waits for: a key, or the mappings of a merge key. Compared by identity, so no text can equal them.
NO_KEY: Final = "\0no key"
MERGE: Final = "\0merge"


class Refused(Exception):
    """A document go-yaml does not accept, or that has no JSON form; the place is that of an event."""

    def __init__(self, message: str, event: Event, hint: str) -> None:
        super().__init__(message)
        self.line = event.start_mark.line if event.start_mark else 0
        self.column = event.start_mark.column if event.start_mark else 0
        self.hint = hint


class _BadKey(str):
    """A key that JSON cannot have. It is refused at the end: a later duplicate may still remove its mapping."""

    __slots__ = ()


class _Anchor:
    """The node an anchor names: its value once complete, and how many nodes go-yaml visits to decode it."""

    __slots__ = ("is_complete", "size", "value")

    def __init__(self) -> None:
        self.is_complete = False
        self.size = 1
        self.value: Json = None

    def complete(self, value: Json, size: int) -> None:
        self.value, self.size, self.is_complete = value, size, True


class OpenNode:
    """A mapping or list whose end has not come yet."""

    __slots__ = ("anchor", "container", "is_flow", "is_map", "key", "key_event", "start", "visited_before")

    def __init__(self, start: CollectionStartEvent | None, visited_before: int) -> None:
        self.start = start
        self.visited_before = visited_before
        self.is_map = type(start) is MappingStartEvent
        self.is_flow = start is not None and bool(start.flow_style)
        self.container: Any = {} if self.is_map else []
        self.key = NO_KEY
        self.key_event: Event | None = None
        self.anchor: _Anchor | None = None


class TreeBuilder:
    """Takes the events of one document; `is_complete` once the root is there, and then `finish` returns it."""

    def __init__(self) -> None:
        self.is_complete = False
        self._node = OpenNode(None, 0)
        self._open: list[OpenNode] = []
        self._anchors: dict[str, _Anchor] = {}
        self._visited = 1  # go-yaml counts the document itself
        self._aliased = 0
        self._doubt: Refused | None = None

    def finish(self) -> Json:
        """Return the document, or refuse what only the whole document can tell."""
        root: Json = self._node.container[0]
        if self._doubt is not None and _has_no_json_form(root):
            raise self._doubt
        return root

    def scalar(self, event: ScalarEvent) -> None:
        self._visited += 1
        node = self._node
        is_key = node.is_map and node.key is NO_KEY
        if node.is_flow and not event.style and "?" in event.value:
            # go-yaml ends a plain scalar in brackets there, and then finds no comma.
            _refuse("a plain scalar in brackets cannot hold a question mark", event, "put the text in quotes")
        if event.tag is not None or event.anchor is not None:
            self._marked_scalar(event, is_key=is_key)
        elif is_key:
            node.key = self._name(event) if event.implicit[0] else event.value
            node.key_event = event
        elif event.implicit[0]:
            self._attach(self._value(event), event)
        else:
            self._attach(event.value, event)

    def start(self, event: CollectionStartEvent) -> None:
        self._visited += 1
        if self._node.is_map and self._node.key is NO_KEY:
            _refuse("a mapping or list cannot be a key", event, "write the key as text")
        if len(self._open) >= MAX_DEPTH:
            _refuse(f"nested deeper than {MAX_DEPTH} levels", event, DEPTH_HINT)
        self._open.append(self._node)
        self._node = OpenNode(event, self._visited - 1)
        if event.anchor is not None:
            self._node.anchor = self._declare(event.anchor)

    def end(self, event: Event) -> None:
        node = self._node
        if node.anchor is not None:
            node.anchor.complete(node.container, self._visited - node.visited_before)
        self._node = self._open.pop()
        self._attach(node.container, node.start or event)

    def alias(self, event: AliasEvent) -> None:
        target = self._anchors.get(event.anchor or "")
        if target is None:
            _refuse(f"unknown anchor {event.anchor!r}", event, "define it with & before this place")
        if not target.is_complete:
            _refuse(f"the value of anchor {event.anchor!r} contains itself", event, "write the value out")
        self._visited += 1
        self._count_alias(target.size, event)
        is_key = self._node.is_map and self._node.key is NO_KEY
        if not isinstance(target.value, dict | list):
            self._settle(target.value, event, is_key=is_key)
        elif is_key:
            _refuse("a mapping or list cannot be a key", event, "write the key as text")
        elif self._node.key is MERGE and isinstance(target.value, list):
            _refuse_merge(event)
        else:
            self._attach(self._expanded(target.value), event)

    def _expanded(self, value: Json) -> Json:
        """Return what an alias stands for: a copy, because trees are changed in place."""
        return _copy(value)

    def _attach(self, value: Json, event: Event) -> None:
        """Put a complete value into the node that waits for it; `event` is where the value begins."""
        node = self._node
        if not node.is_map:
            node.container.append(value)
        elif node.key is MERGE:
            self._merge(value, event)
            node.key = NO_KEY
        else:
            node.container[node.key] = value
            node.key = NO_KEY
        self.is_complete = not self._open

    def _merge(self, value: Json, event: Event) -> None:
        if isinstance(value, list):
            self._visited -= 1  # go-yaml looks at the members only
        # Earlier members win, and all of them win over what the mapping holds so far.
        for member in reversed(value if isinstance(value, list) else [value]):
            if not isinstance(member, dict):
                _refuse_merge(event)
            self._merge_one(member)

    def _merge_one(self, member: dict[str, Json]) -> None:
        self._node.container.update(member)

    def _marked_scalar(self, event: ScalarEvent, *, is_key: bool) -> None:
        """Take a scalar that has a tag or an anchor."""
        try:
            scalar = _marked_value(event)
        except Impossible as problem:
            _refuse(str(problem), event, "correct the text or remove the tag")
        if event.anchor is not None:
            self._declare(event.anchor).complete(scalar, 1)
        if is_key and event.value == "<<" and (event.implicit[0] or event.tag == _MERGE_TAG):
            self._visited -= 1
            self._node.key = MERGE
        else:
            self._settle(scalar, event, is_key=is_key)

    def _settle(self, scalar: Scalar, event: Event, *, is_key: bool) -> None:
        if is_key:
            try:
                self._node.key = as_key(scalar)
            except Impossible as problem:
                self._node.key = self._doubtful_key(problem, event)
            self._node.key_event = event
        else:
            if isinstance(scalar, float) and not math.isfinite(scalar):
                self._doubt_value(event)
            self._attach(as_value(scalar), event)

    def _name(self, event: ScalarEvent) -> str:
        try:
            name = _plain_name(event.value)
        except Impossible as problem:
            return self._doubtful_key(problem, event)
        if name is MERGE:
            self._visited -= 1
        return name

    def _value(self, event: ScalarEvent) -> Json:
        try:
            return _plain_value(event.value)
        except Impossible:
            self._doubt_value(event)
            return math.inf

    def _doubtful_key(self, problem: Impossible, event: Event) -> str:
        self._doubt = self._doubt or Refused(str(problem), event, "put the key in quotes")
        return _BadKey(f"\0{problem}")

    def _doubt_value(self, event: Event) -> None:
        message = "infinity and NaN have no JSON form"
        self._doubt = self._doubt or Refused(message, event, "put the value in quotes if it is text")

    def _declare(self, name: str) -> _Anchor:
        anchor = self._anchors[name] = _Anchor()
        return anchor

    def _count_alias(self, size: int, event: Event) -> None:
        """Count as go-yaml does, which visits every node again for every alias, and refuse what it calls excessive.

        It looks after each node. Between two aliases, and inside one, its measure is largest at the ends, so that
        looking there gives the same answer.
        """
        self._check_aliasing(event)
        self._visited += size
        self._aliased += size
        self._check_aliasing(event)

    def _check_aliasing(self, event: Event) -> None:
        if self._aliased <= 100 or self._visited <= 1000:
            return
        part = min(max((self._visited - 400_000) / 3_600_000, 0), 1)
        if self._aliased / self._visited > 0.99 - 0.89 * part:
            _refuse("excessive aliasing: the aliases expand to far more than the text", event, "write the values out")


def _refuse(message: str, event: Event, hint: str) -> NoReturn:
    raise Refused(message, event, hint)


def _refuse_merge(event: Event) -> NoReturn:
    _refuse("<< needs a mapping or a list of mappings", event, 'write "<<" in quotes if it is an ordinary key')


def _marked_value(event: ScalarEvent) -> Scalar:
    if event.tag is not None:
        return resolve_tagged(event.tag, event.value)
    return resolve(event.value) if event.implicit[0] else event.value


@lru_cache(8192)
def _plain_name(text: str) -> str:
    return MERGE if text == "<<" else as_key(resolve(text))


@lru_cache(8192)
def _plain_value(text: str) -> Json:
    scalar = resolve(text)
    if isinstance(scalar, float) and not math.isfinite(scalar):
        raise Impossible("no JSON form")
    return as_value(scalar)


def _copy(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _copy(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_copy(member) for member in value]
    return value


def _has_no_json_form(value: Json) -> bool:
    if isinstance(value, dict):
        return any(type(key) is _BadKey or _has_no_json_form(member) for key, member in value.items())
    if isinstance(value, list):
        return any(map(_has_no_json_form, value))
    return isinstance(value, float) and not math.isfinite(value)
