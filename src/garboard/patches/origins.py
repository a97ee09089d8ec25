"""Where each field of a patched document comes from.

Who wrote what is read off the engine's trace. Which patches decide a field is found by running the engine without each
of them: what a patch enables, or spoils for another one, leaves no mark at the field itself.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

from garboard.documents import DocumentPath, Json, equal
from garboard.patches.apply import Applied, Replayed
from garboard.patches.fieldpath import FieldPath, Pick, Segment, show_path
from garboard.patches.origin import Base, Cause, Event, History, Origin, OriginKind, same, value_at
from garboard.patches.trace import ABSENT, BASE, Absent, Birth, Container, Item, JsonOrAbsent, Trace, Write


class Origins:
    """Answers for one patched document; `base` is what it was before."""

    def __init__(self, applied: Applied, base: Base) -> None:
        assert applied.trace is not None, "origins need a watched run"
        assert applied.replay is not None
        self._document = applied.document
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
        """Return the name and history of every leaf in whose story one of `kinds` has a part, as the document goes.

        Leaves that patches took away follow at the end.
        """
        found = [(show_path(path, self._document), self.history_at(path)) for path in self.leaves()]
        told = [(name, history) for name, history in found if _has_part(history, kinds)]
        return [*told, *self._taken_away()] if OriginKind.PATCH in kinds else told

    def _taken_away(self) -> Iterator[tuple[str, History]]:
        """Yield the leaves that were there, or would be if one patch were not, and that patches have to do with."""
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
        """What the engine makes of the document without the first patch, without the second, and so on."""
        return list(self._replay.without_each(self._patches))

    def _causes(self, field: FieldPath, value: JsonOrAbsent) -> Iterator[Cause]:
        for number, other in enumerate(self._without):
            path = field.resolve(other.document)
            without = ABSENT if path is None else value_at(other.document, path)
            if not same(value, without):
                origin, through = self._place_of_cause(number, field)
                yield Cause(origin, without, through, other.failed)

    def _place_of_cause(self, number: int, field: FieldPath) -> tuple[Origin, str]:
        """Return where a patch wrote a field, or else the innermost thing around it (which is named) that it wrote."""
        for end in range(len(field.segments), 0, -1):
            around = field.segments[:end]
            at = [write.at for write in self._writes(self._document, around) if write.patch == number]
            at = at or self._written_inside(around, number)
            if at:
                return self._origin(number, at[-1]), "" if end == len(field.segments) else self._shown(around)
        return self._origin(number, ()), ""

    def _written_inside(self, segments: tuple[Segment, ...], number: int) -> list[DocumentPath]:
        """Return the places in a patch that wrote or brought a member of a container."""
        path = FieldPath(segments).resolve(self._document)
        container = None if path is None else value_at(self._document, path)
        if not isinstance(container, dict | list):
            return []
        written = (write for each in self._trace.members(container) for write in self._trace.writes(container, each))
        children = container.values() if isinstance(container, dict) else container
        births = (self._trace.birth(child) for child in children if isinstance(child, dict | list))
        return [
            *(write.at for write in written if write.patch == number),
            *(birth.at for birth in births if birth is not None and birth.patch == number),
        ]

    def _shown(self, segments: tuple[Segment, ...]) -> str:
        path = FieldPath(segments).resolve(self._document)
        return "" if path is None else show_path(path, self._document)

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
        while writes and writes[-1].is_removal:  # of a twin: words of a list go by their value
            writes = writes[:-1]
        if not writes and isinstance(child, dict | list):
            yield from self._writes(child, ())
            return
        if writes:
            yield from self._since_birth(root, step[0], writes)
        else:
            yield Write(birth.patch, self._place_at_birth(birth, step[0], child), ABSENT, child)

    def _since_birth(self, holder: Container, step: str | int, writes: tuple[Write, ...]) -> Iterator[Write]:
        """Yield the writes of a member, after its coming with the container that holds it if it came so."""
        birth, at_birth = self._trace.birth(holder), writes[0].before
        if birth is not None and not isinstance(at_birth, Absent):
            yield Write(birth.patch, self._place_at_birth(birth, step, at_birth), ABSENT, at_birth)
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
            writes = self._trace.writes(holder, member)
            if not rest:
                yield from self._since_birth(holder, name if isinstance(member, str) else 0, writes)
            for write in writes if rest else ():
                yield from self._writes_before(write, ABSENT, rest)

    def _place_at_birth(self, birth: Birth, step: str | int, value: Json) -> DocumentPath:
        """Return where a member was written first; elements of a list may have moved since, and go by their value."""
        if isinstance(step, str):
            return (*birth.at, step)
        source = self._base.value if birth.patch == BASE else self._patches[birth.patch].value
        holder = value_at(source, birth.at)  # nothing where a JSON patch copied it from elsewhere
        elements = holder if isinstance(holder, list) else []
        found = (index for index, element in enumerate(elements) if equal(element, value))
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
        return Event(self._origin(write.patch, write.at), write.before, write.after)

    def _origin(self, number: int, at: DocumentPath) -> Origin:
        if number == BASE:
            return self._base.origin(at)
        patch = self._patches[number]
        return Origin(OriginKind.PATCH, patch.source.name, patch.source.position(at), f"{patch.type} patch", patch)


def _has_part(history: History, kinds: tuple[OriginKind, ...]) -> bool:
    return any(event.origin.kind in kinds for event in history.events) or (
        OriginKind.PATCH in kinds and bool(history.causes)
    )


def _json(value: JsonOrAbsent) -> Json:
    return None if isinstance(value, Absent) else value


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
