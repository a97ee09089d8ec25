"""Where each field of a patched document comes from, read off the engine's trace."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from itertools import takewhile
from typing import Protocol

from garboard.documents import DocumentPath, Json, Position, equal, read_yaml
from garboard.patches.apply import Applied
from garboard.patches.fieldpath import FieldPath, Pick, Segment, show_path
from garboard.patches.patch import Patch, Source
from garboard.patches.trace import ABSENT, BASE, Absent, Birth, Container, Item, JsonOrAbsent, Trace, Write


class OriginKind(StrEnum):
    """What can decide a value."""

    PATCH = "patch"
    BASE = "base"  # a line of the document that was patched
    CONFIG = "config"  # a line of the configuration that the document was rendered from
    HOST = "host"  # something found on the machine
    DEFAULT = "default"  # nobody: it is what the minor does


@dataclass(frozen=True, slots=True)
class Origin:
    """Who wrote a value: a patch or what the document came from, at a place in a file if there is one."""

    kind: OriginKind
    file: str = ""
    position: Position | None = None
    detail: str = ""  # in words: the configuration field, the fact of the machine, whose default
    patch: Patch | None = None

    @property
    def where(self) -> str:
        if self.position is None:
            return self.detail
        return f"{self.file}:{self.position.line}:{self.position.column}"


class Base(Protocol):
    """The document before the first patch: its content, and where each part of it comes from."""

    @property
    def value(self) -> Json: ...

    def origin(self, at: DocumentPath) -> Origin: ...


@dataclass(frozen=True)
class TextBase:
    """A document that was read from a text."""

    source: Source

    @cached_property
    def value(self) -> Json:
        return read_yaml(self.source.text, source=self.source.name)

    def origin(self, at: DocumentPath) -> Origin:
        return Origin(OriginKind.BASE, self.source.name, self.source.position(at))


@dataclass(frozen=True, slots=True)
class Event:
    """One writing of a field: by whom, what was there before, what after."""

    origin: Origin
    before: JsonOrAbsent
    after: JsonOrAbsent

    @property
    def is_removal(self) -> bool:
        return self.after is ABSENT


@dataclass(frozen=True, slots=True)
class History:
    """Everything that happened to one field, first to last."""

    path: DocumentPath | None
    value: JsonOrAbsent
    events: tuple[Event, ...]

    @property
    def origin(self) -> Origin | None:
        """The origin of the present value: the first of those that wrote it without another value in between."""
        writers = self.writers
        return writers[0] if writers else None

    @property
    def writers(self) -> tuple[Origin, ...]:
        """All who wrote the present value, first to last, since it last differed."""
        return tuple(event.origin for event in self._since_it_differed(self.events))

    @property
    def cause(self) -> Patch | None:
        """The patch without which this field would be different; None if there is none, or several say the same."""
        writers = self._since_it_differed(_by_patch(self.events))
        return writers[0].origin.patch if len(writers) == 1 else None

    def _since_it_differed(self, events: Sequence[Event]) -> list[Event]:
        found = list(takewhile(lambda event: same(event.after, self.value), reversed(events)))
        return found[::-1]


def _by_patch(events: Sequence[Event]) -> list[Event]:
    """Return the events with what one patch did in several steps as one: it comes and goes as a whole."""
    found: list[Event] = []
    for event in events:
        if found and event.origin.patch is not None and found[-1].origin.patch is event.origin.patch:
            found[-1] = replace(found[-1], after=event.after)
        else:
            found.append(event)
    return found


def same(left: JsonOrAbsent, right: JsonOrAbsent) -> bool:
    """Return whether two values, or absences, are the same."""
    if isinstance(left, Absent) or isinstance(right, Absent):
        return left is right
    return equal(left, right)


class Origins:
    """Answers for one patched document; `base` is what it was before."""

    def __init__(self, applied: Applied, base: Base) -> None:
        assert applied.trace is not None, "origins need a watched run"
        self._document = applied.document
        self._patches = applied.patches
        self._trace: Trace = applied.trace
        self._base = base

    def history(self, field: FieldPath) -> History:
        """Return what happened to a field; a field that is not there may have been removed by a patch."""
        path = field.resolve(self._document)
        if path is not None:
            return self.history_at(path)
        return History(None, ABSENT, self._events(self._writes(self._document, field.segments)))

    def history_at(self, path: DocumentPath) -> History:
        """Return what happened to the field at a concrete path of the document."""
        segments = FieldPath.identifying(path, self._document).segments
        return History(path, value_at(self._document, path), self._events(self._writes(self._document, segments)))

    def leaves(self) -> Iterator[DocumentPath]:
        """Yield the path of every scalar and every empty container of the document."""
        yield from _leaves(self._document, ())

    def fields_by(self, *kinds: OriginKind) -> list[tuple[str, History]]:
        """Return the name and history of every leaf in whose story one of `kinds` has a part, as the document goes."""
        found = []
        for path in self.leaves():
            history = self.history_at(path)
            if any(event.origin.kind in kinds for event in history.events):
                found.append((show_path(path, self._document), history))
        return found

    def _writes(self, root: Json, segments: tuple[Segment, ...]) -> Iterator[Write]:
        """Yield every write of a field below `root`, those to containers that were replaced since included."""
        birth = self._trace.birth(root) if isinstance(root, dict | list) else None
        if birth is None or not isinstance(root, dict | list):
            return
        if not segments:
            yield Write(birth.patch, birth.at, ABSENT, root)
            return
        rest = segments[1:]
        step = FieldPath(segments[:1]).resolve(root)
        if step is None:
            yield from self._writes_of_removed(root, segments[0], rest)
            return
        child = value_at(root, step)
        assert not isinstance(child, Absent)
        writes = self._trace.writes(root, _name(step[0], child))
        if rest:
            for write in writes:
                yield from self._writes_before(write, child, rest)
            yield from self._writes(child, rest)
            return
        if not writes and isinstance(child, dict | list):
            yield from self._writes(child, ())
            return
        at_birth = writes[0].before if writes else child
        if not isinstance(at_birth, Absent):
            yield Write(birth.patch, self._place_at_birth(birth, step[0], at_birth), ABSENT, at_birth)
        yield from writes

    def _writes_before(self, write: Write, child: JsonOrAbsent, rest: tuple[Segment, ...]) -> Iterator[Write]:
        """Yield the story of a field in the container that `write` replaced or took away; `child` is there now."""
        if write.before is child:
            return
        if not isinstance(write.before, dict | list):
            if write.is_removal:
                yield write
            return
        yield from self._writes(write.before, rest)
        path = FieldPath(rest).resolve(write.before)
        if path is not None and not self._is_born_with(write.after, rest):
            yield Write(write.patch, write.at, value_at(write.before, path), ABSENT)

    def _is_born_with(self, value: JsonOrAbsent, segments: tuple[Segment, ...]) -> bool:
        """Tell whether a container had a field when it came to be, whatever was written to it since."""
        for segment in segments:
            step = FieldPath((segment,)).resolve(_json(value))
            if step is None or not isinstance(value, dict | list):
                return False
            child = value_at(value, step)
            writes = self._trace.writes(value, _name(step[0], child))
            if isinstance(value, list) and isinstance(child, dict | list) and not self._are_twins(value, child):
                return False
            value = writes[0].before if writes else child
        return not isinstance(value, Absent)

    def _are_twins(self, left: Container, right: Container) -> bool:
        """Tell whether two containers came with the same patch."""
        births = (self._trace.birth(left), self._trace.birth(right))
        return len({birth.patch for birth in births if birth is not None}) == 1

    def _writes_of_removed(self, holder: Container, segment: Segment, rest: tuple[Segment, ...]) -> Iterator[Write]:
        """Yield the writes of the members of `holder` that `segment` names and that are gone."""
        wanted = segment.value if isinstance(segment, Pick) else str(segment)
        for member in self._trace.members(holder):
            name = str(member.value) if isinstance(member, Item) else member
            if name != wanted and not (wanted.startswith("-") and name.partition("=")[0] == wanted):
                continue
            for write in self._trace.writes(holder, member):
                if rest:
                    yield from self._writes_before(write, ABSENT, rest)
                else:
                    yield write

    def _place_at_birth(self, birth: Birth, step: str | int, value: Json) -> DocumentPath:
        """Return where a member was written first; elements of a list may have moved since, and go by their value."""
        if isinstance(step, str):
            return (*birth.at, step)
        holder = self._base.value if birth.patch == BASE else self._patches[birth.patch].value
        for place in birth.at:
            holder = holder[place]  # type: ignore[index]
        assert isinstance(holder, list)
        found = (index for index, element in enumerate(holder) if equal(element, value))
        return (*birth.at, next(found, step))

    def _events(self, writes: Iterator[Write]) -> tuple[Event, ...]:
        """Return the writes as events; each overrides what the one before it left."""
        events: list[Event] = []
        for write in writes:
            event = self._event(write)
            if events and isinstance(event.before, Absent):
                event = replace(event, before=events[-1].after)
            events.append(event)
        return tuple(events)

    def _event(self, write: Write) -> Event:
        if write.patch == BASE:
            return Event(self._base.origin(write.at), write.before, write.after)
        patch = self._patches[write.patch]
        place = patch.source.position(write.at)
        origin = Origin(OriginKind.PATCH, patch.source.name, place, f"{patch.type} patch", patch)
        return Event(origin, write.before, write.after)


def _json(value: JsonOrAbsent) -> Json:
    return None if isinstance(value, Absent) else value


def value_at(value: JsonOrAbsent, path: DocumentPath) -> JsonOrAbsent:
    """Return what stands at `path` below `value`, or ABSENT."""
    for step in path:
        if isinstance(value, dict) and step in value:
            value = value[str(step)]
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return ABSENT
    return value


def _name(step: str | int, child: JsonOrAbsent) -> str | Item:
    """Return the name under which the trace knows a member: list elements go by their value."""
    if isinstance(step, str):
        return step
    return Item.of(None if isinstance(child, dict | list | Absent) else child)


def _leaves(value: Json, path: DocumentPath) -> Iterator[DocumentPath]:
    if isinstance(value, dict) and value:
        for key, member in value.items():
            yield from _leaves(member, (*path, key))
    elif isinstance(value, list) and value:
        for index, member in enumerate(value):
            yield from _leaves(member, (*path, index))
    else:
        yield path
