"""What can be said about where a field comes from: who wrote it, in which order, and which patches decide it."""

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import takewhile
from typing import Protocol

from garboard.documents import DocumentPath, Json, Position, equal, read_yaml
from garboard.patches.patch import Patch, Source
from garboard.patches.trace import ABSENT, Absent, JsonOrAbsent


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
class Cause:
    """A patch that decides a field: without it the field would be `without`.

    Most causes wrote the field. Another one makes a difference to what the writers did: `through` is the field around
    this one that it wrote, if there is one.
    """

    origin: Origin
    without: JsonOrAbsent
    through: str = ""
    needed_by: tuple[Patch, ...] = ()  # patches that cannot be applied without this one

    @property
    def patch(self) -> Patch:
        assert self.origin.patch is not None
        return self.origin.patch


@dataclass(frozen=True, slots=True)
class History:
    """Everything that happened to one field, first to last, and the patches that decide what it is now."""

    path: DocumentPath | None
    value: JsonOrAbsent
    events: tuple[Event, ...]
    causes: tuple[Cause, ...] = ()

    @property
    def origin(self) -> Origin | None:
        """The origin of the present value: the first of those that wrote it without another value in between."""
        writers = self.writers
        return writers[0] if writers else None

    @property
    def writers(self) -> tuple[Origin, ...]:
        """All who wrote the present value, first to last, since it last differed."""
        since = list(takewhile(lambda event: same(event.after, self.value), reversed(self.events)))
        return tuple(event.origin for event in reversed(since))

    def names(self, patch: Patch) -> bool:
        """Tell whether `patch` decides this field: exactly if the field would be another without it."""
        return any(cause.patch is patch for cause in self.causes)


def same(left: JsonOrAbsent, right: JsonOrAbsent) -> bool:
    """Return whether two values, or absences, are the same."""
    if isinstance(left, Absent) or isinstance(right, Absent):
        return left is right
    return equal(left, right)


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
