"""Where a field comes from: what wrote it, in which order, and which patches decide its value."""

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import takewhile
from typing import Protocol

from garboard.documents import DocumentPath, Json, Position, read_yaml
from garboard.patches.json_values import ABSENT, Absent, JsonOrAbsent, same
from garboard.patches.patch import Patch, SourceText


class OriginKind(StrEnum):
    """What can decide a value."""

    PATCH = "patch"
    BASE = "base"  # a line of the document that was patched
    CONFIG = "config"  # a line of the configuration that the document was rendered from
    HOST = "host"  # something found on the machine
    DEFAULT = "default"  # nothing was given: what the minor does by itself


@dataclass(frozen=True, slots=True)
class Origin:
    """What wrote a value: a patch, or what the document was made from; with a place in a file if there is one."""

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

    source: SourceText

    @cached_property
    def value(self) -> Json:
        return read_yaml(self.source.text, source=self.source.name)

    def origin(self, at: DocumentPath) -> Origin:
        return Origin(OriginKind.BASE, self.source.name, self.source.position(at))


@dataclass(frozen=True, slots=True)
class Event:
    """One write of a field: its origin, and the value before and after."""

    origin: Origin
    before: JsonOrAbsent
    after: JsonOrAbsent

    @property
    def is_removal(self) -> bool:
        return self.after is ABSENT


@dataclass(frozen=True, slots=True)
class Part:
    """A write of something inside a map or list: what, and where the patch says so."""

    name: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class Cause:
    """A patch that decides a field: without it the field would be `without`.

    Most causes wrote the field itself, or parts of it. A cause that did not changes what the writers of the field do:
    `through` is the field around this one that it wrote, if there is one.
    """

    origin: Origin
    without: JsonOrAbsent
    through: str = ""
    needed_by: tuple[Patch, ...] = ()  # patches that cannot be applied without this one
    parts: tuple[Part, ...] = ()  # of a map or list: what the patch wrote inside it, in the order of the patch

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
        """The origin of the present value: the first write since the value last differed."""
        writers = self.writers
        return writers[0] if writers else None

    @property
    def writers(self) -> tuple[Origin, ...]:
        """The origins of all writes of the present value, first to last, since it last differed."""
        since = list(takewhile(lambda event: same(event.after, self.written), reversed(self.events)))
        return tuple(event.origin for event in reversed(since))

    @property
    def written(self) -> JsonOrAbsent:
        """The present value as it was last written: kubeadm's decoding spells some anew, such as 1024Mi as 1Gi."""
        is_respelt = self.events and not isinstance(self.value, Absent) and not self.events[-1].is_removal
        return self.events[-1].after if is_respelt else self.value

    def names(self, patch: Patch) -> bool:
        """Tell whether `patch` decides this field: without it, the field would have another value."""
        return any(cause.patch is patch for cause in self.causes)
