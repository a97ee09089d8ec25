"""Where each field of a patched document comes from.

The trace of the run says which patch wrote what. Which patches decide a field is found by running the engine without
each of them: a patch that only enables or prevents what another one does is not recorded at the field itself.
"""

from collections.abc import Iterator
from dataclasses import astuple, replace
from functools import cached_property
from itertools import takewhile

from garboard.documents import DocumentPath, Json, equal
from garboard.patches.apply import Applied, Replayed
from garboard.patches.fieldpath import FieldPath, Pick, Segment, show_path
from garboard.patches.history import Base, Cause, Event, History, Origin, OriginKind, Part
from garboard.patches.json_values import ABSENT, Absent, Container, JsonOrAbsent, same, value_at
from garboard.patches.trace import BASE, Creation, Item, Trace, Write, written_below, written_in


class Origins:
    """The history of each field of one patched document; `base` is the document before the patches."""

    def __init__(self, applied: Applied, base: Base) -> None:
        assert applied.trace is not None, "origins need a traced run"
        assert applied.replay is not None
        self.document = self._document = applied.document
        self.shape = applied.replay.shape
        self._patches = applied.patches
        self._trace: Trace = applied.trace
        self._replay = applied.replay
        self._base = base

    def history(self, field: FieldPath) -> History:
        """Return what happened to a field; a field that is not there may have been removed by a patch."""
        field = field.pinned(self._document)
        path = field.resolve(self._document)
        value = ABSENT if path is None else value_at(self._document, path)
        events = self._events(self._writes(self._document, field.segments))
        return History(path, value, events, tuple(self._causes(field, value)))

    def history_at(self, path: DocumentPath) -> History:
        """Return what happened to the field at a concrete path of the document."""
        return self.history(FieldPath(path))

    def leaves(self) -> Iterator[DocumentPath]:
        """Yield the path of every scalar and every empty container of the document."""
        yield from _leaves(self._document, ())

    def fields_by(self, *kinds: OriginKind) -> list[tuple[str, History]]:
        """Return name and history of every leaf that an origin of one of `kinds` wrote or decides, in document order.

        Leaves that patches removed follow at the end.
        """
        found = [(show_path(path, self._document), self.history_at(path)) for path in self.leaves()]
        told = [(name, history) for name, history in found if _has_part(history, kinds)]
        return [*told, *self._removed_leaves()] if OriginKind.PATCH in kinds else told

    def _removed_leaves(self) -> Iterator[tuple[str, History]]:
        """Yield the leaves that patches removed: of the original, or of what the others make without one patch."""
        asked: set[FieldPath] = set()
        for document in (self._replay.original, *(other.document for other in self._without)):
            for path in _leaves_beside(document, self._document, ()):
                field = FieldPath.identifying(path, document)
                if field not in asked and field.resolve(self._document) is None:
                    asked.add(field)
                    history = self.history(field)
                    if _has_part(history, (OriginKind.PATCH,)):
                        yield show_path(path, document), history

    @cached_property
    def _without(self) -> list[Replayed]:
        """The document patched without the first patch, without the second, and so on."""
        return list(self._replay.without_each(self._patches))

    def _causes(self, field: FieldPath, value: JsonOrAbsent) -> Iterator[Cause]:
        for number, other in enumerate(self._without):
            path = field.resolve(other.document)
            without = ABSENT if path is None else value_at(other.document, path)
            if not same(value, without):
                parts = self._parts(number, field)
                origin, through = self._place_of_cause(number, field, parts)
                yield Cause(origin, without, through, other.failed, parts)

    def _place_of_cause(self, number: int, field: FieldPath, parts: tuple[Part, ...]) -> tuple[Origin, str]:
        """Return where a patch wrote a field; else where it wrote a part of it, or the innermost field around it."""
        at = [write.at for write in self._writes(self._document, field.segments) if write.patch == number]
        if at or parts:
            return (self._origin(number, at[-1]), "") if at else (parts[0].origin, parts[0].name)
        for end in range(len(field.segments) - 1, 0, -1):
            around = field.segments[:end]
            at = [write.at for write in self._writes(self._document, around) if write.patch == number]
            at = at or self._written_beside(around, number)
            if at:
                return self._origin(number, at[-1]), self._shown(around)
        return self._origin(number, self._operation_about(number, field)), ""

    def _written_beside(self, segments: tuple[Segment, ...], number: int) -> list[DocumentPath]:
        """Return the places in a patch that wrote or created a member of a container."""
        path = FieldPath(segments).resolve(self._document)
        container = None if path is None else value_at(self._document, path)
        if not isinstance(container, dict | list):
            return []
        return [each.at for each in written_in(self._trace, container, (), number)]

    def _parts(self, number: int, field: FieldPath) -> tuple[Part, ...]:
        """Return what a patch wrote inside a field at any depth, in the order of the patch."""
        path = field.resolve(self._document)
        value = None if path is None else value_at(self._document, path)
        if path is None or not isinstance(value, dict | list):
            return ()
        found = list(written_below(self._trace, value, path, number))
        standing = [each for each in found if each.is_standing] or found
        position = self._patches[number].source.position
        # One line may take a flag away and put another in its place: the one that is there says more.
        at_line = {astuple(position(each.at)): each for each in sorted(standing, key=lambda each: len(each.path))}
        return tuple(
            Part(show_path(each.path, self._document), self._origin(number, each.at))
            for _, each in sorted(at_line.items(), key=lambda item: item[0])
        )

    def _operation_about(self, number: int, field: FieldPath) -> DocumentPath:
        """Return the operation of a JSON patch whose pointer goes furthest along a field; else the whole patch."""
        operations, path = self._patches[number].value, field.resolve(self._document)
        if not isinstance(operations, list) or path is None:
            return ()
        return (max(range(len(operations)), key=lambda index: _shared_steps(operations[index], path), default=0),)

    def _shown(self, segments: tuple[Segment, ...]) -> str:
        path = FieldPath(segments).resolve(self._document)
        return "" if path is None else show_path(path, self._document)

    def _writes(self, root: Json, segments: tuple[Segment, ...]) -> Iterator[Write]:
        """Yield every write of a field below `root`, including writes to containers that were replaced later."""
        creation = self._trace.creation(root) if isinstance(root, dict | list) else None
        if creation is None or not isinstance(root, dict | list):
            return
        if not segments:
            yield Write(creation.patch, creation.at, ABSENT, root)
            return
        rest = segments[1:]
        step = FieldPath(segments[:1]).resolve(root)
        if step is None:
            yield from self._writes_of_removed(root, segments[0], rest)
            return
        child = value_at(root, step)
        assert not isinstance(child, Absent)
        writes = self._writes_of_member(root, step[0], child)
        if rest:
            for write in writes:
                yield from self._writes_before(write, child, rest)
            yield from self._writes(child, rest)
            return
        while writes and writes[-1].is_removal:  # of an equal word: list elements are identified by value
            writes = writes[:-1]
        if not writes and isinstance(child, dict | list):
            yield from self._writes(child, ())
            return
        if writes:
            yield from self._since_creation(root, step[0], writes)
        else:
            yield Write(creation.patch, self._place_at_creation(creation, step[0], child), ABSENT, child)

    def _writes_of_member(self, holder: Container, step: str | int, child: JsonOrAbsent) -> tuple[Write, ...]:
        """Return the writes of a member; scalar elements of lists are identified by value, others have none."""
        if isinstance(step, str):
            return self._trace.writes(holder, step)
        return () if isinstance(child, dict | list | Absent) else self._trace.writes(holder, Item.of(child))

    def _since_creation(self, holder: Container, step: str | int, writes: tuple[Write, ...]) -> Iterator[Write]:
        """Yield the writes of a member, beginning with the creation of its container if the member came with it."""
        creation, at_creation = self._trace.creation(holder), writes[0].before
        if creation is not None and not isinstance(at_creation, Absent):
            yield Write(creation.patch, self._place_at_creation(creation, step, at_creation), ABSENT, at_creation)
        yield from writes

    def _writes_before(self, write: Write, child: JsonOrAbsent, rest: tuple[Segment, ...]) -> Iterator[Write]:
        """Yield the writes of a field in the container that `write` replaced or removed; `child` is there now."""
        if write.before is child:
            return
        if not isinstance(write.before, dict | list):
            if write.is_removal:
                yield write
            return
        yield from self._writes(write.before, rest)
        path = FieldPath(rest).resolve(write.before)
        if path is not None and not self._had_at_creation(write.after, rest):
            yield Write(write.patch, write.at, value_at(write.before, path), ABSENT)

    def _had_at_creation(self, value: JsonOrAbsent, segments: tuple[Segment, ...]) -> bool:
        """Tell whether a container had a field when it was created, whatever was written to it since."""
        for segment in segments:
            step = FieldPath((segment,)).resolve(_json(value))
            if step is None or not isinstance(value, dict | list):
                return False
            child = value_at(value, step)
            writes = self._writes_of_member(value, step[0], child)
            if isinstance(value, list) and isinstance(child, dict | list) and not self._came_together(value, child):
                return False
            value = writes[0].before if writes else child
        return not isinstance(value, Absent)

    def _came_together(self, left: Container, right: Container) -> bool:
        """Tell whether the same patch created two containers."""
        creations = (self._trace.creation(left), self._trace.creation(right))
        return len({creation.patch for creation in creations if creation is not None}) == 1

    def _writes_of_removed(self, holder: Container, segment: Segment, rest: tuple[Segment, ...]) -> Iterator[Write]:
        """Yield the writes of the members of `holder` that `segment` names and that are gone."""
        wanted = segment.value if isinstance(segment, Pick) else str(segment)
        for member in self._trace.members(holder):
            name = str(member.value) if isinstance(member, Item) else member
            if name != wanted and not (wanted.startswith("-") and name.partition("=")[0] == wanted):
                continue
            writes = self._trace.writes(holder, member)
            if not rest:
                yield from self._since_creation(holder, name if isinstance(member, str) else 0, writes)
            for write in writes if rest else ():
                yield from self._writes_before(write, ABSENT, rest)

    def _place_at_creation(self, creation: Creation, step: str | int, value: Json) -> DocumentPath:
        """Return where a member was first written; list elements may have moved since and are identified by value."""
        if isinstance(step, str):
            return (*creation.at, step)
        source = self._base.value if creation.patch == BASE else self._patches[creation.patch].value
        holder = value_at(source, creation.at)  # nothing where a JSON patch copied it from elsewhere
        elements = holder if isinstance(holder, list) else []
        found = (index for index, element in enumerate(elements) if equal(element, value))
        return (*creation.at, next(found, step))

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
        return Event(self._origin(write.patch, write.at), write.before, write.after)

    def _origin(self, number: int, at: DocumentPath) -> Origin:
        if number == BASE:
            return self._base.origin(at)
        patch = self._patches[number]
        detail = f"{patch.type} patch of {patch.owner}" if patch.owner else f"{patch.type} patch"
        return Origin(OriginKind.PATCH, patch.source.name, patch.source.position(at), detail, patch)


def _shared_steps(operation: Json, path: DocumentPath) -> int:
    """Return how far a pointer of an operation goes along a path."""
    pointers = [operation.get(key) for key in ("path", "from")] if isinstance(operation, dict) else []
    tokens = [FieldPath.parse(pointer).segments for pointer in pointers if isinstance(pointer, str)]
    return max((sum(1 for _ in takewhile(_is_pair, zip(each, path, strict=False))) for each in tokens), default=0)


def _is_pair(steps: tuple[Segment, str | int]) -> bool:
    return str(steps[0]) == str(steps[1])


def _has_part(history: History, kinds: tuple[OriginKind, ...]) -> bool:
    return any(event.origin.kind in kinds for event in history.events) or (
        OriginKind.PATCH in kinds and bool(history.causes)
    )


def _json(value: JsonOrAbsent) -> Json:
    return None if isinstance(value, Absent) else value


def _leaves(value: Json, path: DocumentPath) -> Iterator[DocumentPath]:
    if isinstance(value, dict) and value:
        for key, member in value.items():
            yield from _leaves(member, (*path, key))
    elif isinstance(value, list) and value:
        for index, member in enumerate(value):
            yield from _leaves(member, (*path, index))
    else:
        yield path


def _leaves_beside(value: Json, present: Json, path: DocumentPath) -> Iterator[DocumentPath]:
    """Yield the leaves of `value` without those of parts that `present` has as well."""
    if isinstance(value, dict) and isinstance(present, dict):
        for key, member in value.items():
            if key in present:
                yield from _leaves_beside(member, present[key], (*path, key))
            else:
                yield from _leaves(member, (*path, key))
    elif isinstance(value, list) and isinstance(present, list):
        rest = list(present)
        for index, element in enumerate(value):
            twin = next((other for other, each in enumerate(rest) if equal(each, element)), None)
            if twin is None:
                yield from _leaves(element, (*path, index))
            else:
                del rest[twin]
    elif not equal(value, present):
        yield from _leaves(value, path)
