"""Where each field of a patched document comes from, read off the engine's trace."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from garboard.documents import DocumentPath, Json, equal, read_yaml
from garboard.patches.apply import Applied
from garboard.patches.fieldpath import FieldPath, Pick, show_path
from garboard.patches.patch import Patch, Source
from garboard.patches.trace import ABSENT, BASE, Absent, Birth, Item, JsonOrAbsent, Trace, Write


@dataclass(frozen=True, slots=True)
class Origin:
    """Who wrote a value: a patch, or the document that the patches were applied to (`patch` is None)."""

    patch: Patch | None
    where: str


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
        found: list[Origin] = []
        for event in reversed(self.events):
            if not same(event.after, self.value):
                break
            found.append(event.origin)
        return tuple(reversed(found))

    @property
    def cause(self) -> Patch | None:
        """The patch without which this field would be different; None if there is none, or several say the same."""
        writers = self.writers
        return writers[0].patch if len(writers) == 1 else None


def same(left: JsonOrAbsent, right: JsonOrAbsent) -> bool:
    """Return whether two values, or absences, are the same."""
    if isinstance(left, Absent) or isinstance(right, Absent):
        return left is right
    return equal(left, right)


class Origins:
    """Answers for one patched document; `base` is the text it started from."""

    def __init__(self, applied: Applied, base: Source) -> None:
        assert applied.trace is not None, "origins need a watched run"
        self._document = applied.document
        self._patches = applied.patches
        self._trace: Trace = applied.trace
        self._base = base

    def history(self, field: FieldPath) -> History:
        """Return what happened to a field; a field that is not there may have been removed by a patch."""
        path = field.resolve(self._document)
        if path is None:
            return History(None, ABSENT, tuple(self._removals(field)))
        return self.history_at(path)

    def history_at(self, path: DocumentPath) -> History:
        """Return what happened to the field at a concrete path of the document."""
        value = self._document
        for step in path:
            value = value[step]  # type: ignore[call-overload, index]
        events = [self._event(write) for write in self._writes(self._document, path)]
        return History(path, value, tuple(events))

    def leaves(self) -> Iterator[DocumentPath]:
        """Yield the path of every scalar and every empty container of the document."""
        yield from _leaves(self._document, ())

    def patched_fields(self) -> list[tuple[str, History]]:
        """Return the name and history of every leaf that some patch wrote, in the order of the document."""
        found = []
        for path in self.leaves():
            history = self.history_at(path)
            if any(event.origin.patch is not None for event in history.events):
                found.append((show_path(path, self._document), history))
        return found

    def _writes(self, root: Json, path: DocumentPath) -> Iterator[Write]:
        """Yield every write of `path` below `root`, those to containers that were replaced since included."""
        birth = self._trace.birth(root) if isinstance(root, dict | list) else None
        if not path:
            if birth is not None:
                yield Write(birth.patch, birth.at, ABSENT, root)
            return
        if not isinstance(root, dict | list) or birth is None:
            return
        step = path[0]
        child = _member(root, step)
        writes = self._trace.writes(root, _name(step, child))
        for write in writes:
            # What an earlier container held here before it was replaced belongs to the story.
            if len(path) > 1 and isinstance(write.before, dict | list) and write.before is not child:
                yield from self._writes(write.before, path[1:])
        if len(path) > 1:
            yield from self._writes(child, path[1:]) if isinstance(child, dict | list) else ()
            return
        at_birth = writes[0].before if writes else child
        if not isinstance(at_birth, Absent):
            yield Write(birth.patch, self._place_at_birth(birth, step, at_birth), ABSENT, at_birth)
        yield from writes

    def _place_at_birth(self, birth: Birth, step: str | int, value: Json) -> DocumentPath:
        """Return where a member was written first; elements of a list may have moved since, and go by their value."""
        if isinstance(step, str):
            return (*birth.at, step)
        holder = self._base_value if birth.patch == BASE else self._patches[birth.patch].value
        for place in birth.at:
            holder = holder[place]  # type: ignore[call-overload, index]
        assert isinstance(holder, list)
        found = (index for index, element in enumerate(holder) if equal(element, value))
        return (*birth.at, next(found, step))

    @cached_property
    def _base_value(self) -> Json:
        return read_yaml(self._base.text, source=self._base.name)

    def _removals(self, field: FieldPath) -> Iterator[Event]:
        """Yield the writes of the first segment that the document lacks, if what it names was there once."""
        holder = self._document
        for number, segment in enumerate(field.segments):
            path = FieldPath((segment,)).resolve(holder)
            if path is None:
                if isinstance(holder, dict | list):
                    yield from self._removals_of(holder, segment, field.segments[number + 1 :])
                return
            holder = holder[path[0]]  # type: ignore[call-overload, index]

    def _removals_of(
        self, holder: "dict[str, Json] | list[Json]", segment: str | int | Pick, rest: tuple[str | int | Pick, ...]
    ) -> Iterator[Event]:
        for member in self._trace.members(holder):
            wanted = segment.value if isinstance(segment, Pick) else str(segment)
            name = str(member.value) if isinstance(member, Item) else member
            if name != wanted and name.partition("=")[0] != wanted:
                continue
            for write in self._trace.writes(holder, member):
                if write.is_removal and (not rest or FieldPath(rest).resolve(_json(write.before)) is not None):
                    yield self._event(write)

    def _event(self, write: Write) -> Event:
        if write.patch == BASE:
            return Event(Origin(None, self._base.where(write.at)), write.before, write.after)
        patch = self._patches[write.patch]
        return Event(Origin(patch, patch.where(write.at)), write.before, write.after)


def _json(value: JsonOrAbsent) -> Json:
    return None if isinstance(value, Absent) else value


def _member(container: "dict[str, Json] | list[Json]", step: str | int) -> JsonOrAbsent:
    if isinstance(container, dict):
        return container.get(str(step), ABSENT)
    return container[step] if isinstance(step, int) and step < len(container) else ABSENT


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
