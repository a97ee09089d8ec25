"""A record of what the patch engine did: which patch wrote which member, in which order, over what.

Members are identified by the identity of the container that holds them, not by a path: strategic merge reorders
lists, and a path that was right when a patch ran may be wrong when the next one has run. Containers seen here are kept
alive, so an identity is never used twice.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self, TypeAlias

from garboard.documents import DocumentPath, Json
from garboard.patches.json_values import ABSENT, Container, JsonOrAbsent, same

BASE = -1  # the number that stands for the document as it was before the first patch


@dataclass(frozen=True, slots=True)
class Item:
    """A scalar element of a list, or an element of a merge list by its key: positions shift, values do not."""

    kind: type  # true is not 1, and 1 is not 1.0
    value: str | int | float | bool | None

    @classmethod
    def of(cls, value: Json) -> Self:
        """Return the name of an element; a container cannot be a key and goes by its text."""
        return cls(type(value), repr(value) if isinstance(value, dict | list) else value)


Member: TypeAlias = "str | Item"


@dataclass(frozen=True, slots=True)
class Write:
    """One patch setting or removing one member; `at` is the place in the patch document."""

    patch: int
    at: DocumentPath
    before: JsonOrAbsent
    after: JsonOrAbsent

    @property
    def is_removal(self) -> bool:
        return self.after is ABSENT


@dataclass(frozen=True, slots=True)
class Creation:
    """What created a container: a patch (or the base document), and the place in it."""

    patch: int
    at: DocumentPath


class Trace:
    """The record of one run of the engine over one document."""

    def __init__(self, base: Json) -> None:
        self.patch = BASE
        self._creations: dict[int, Creation] = {}
        self._writes: dict[tuple[int, Member], list[Write]] = {}
        self._alive: list[Container] = []
        self.record_tree(base, ())

    def record_tree(self, value: Json, at: DocumentPath) -> None:
        """Record that `value`, with everything below it, comes from `at` in the current patch."""
        if isinstance(value, dict | list):
            self.record_container(value, at)
            members = value.items() if isinstance(value, dict) else enumerate(value)
            for key, member in members:
                self.record_tree(member, (*at, key))

    def record_container(self, container: Container, at: DocumentPath) -> None:
        """Record where `container` itself comes from, and nothing below it."""
        self._creations[id(container)] = Creation(self.patch, at)
        self._alive.append(container)

    def record_write(
        self, container: Container, member: Member, at: DocumentPath, before: JsonOrAbsent, after: JsonOrAbsent
    ) -> None:
        """Record that the current patch set `member` of `container` (or removed it: `after` is ABSENT)."""
        self._alive.append(container)
        for value in (before, after):
            if isinstance(value, dict | list):
                self._alive.append(value)
        self._writes.setdefault((id(container), member), []).append(Write(self.patch, at, before, after))

    def creation(self, container: Container) -> Creation | None:
        return self._creations.get(id(container))

    def writes(self, container: Container, member: Member) -> tuple[Write, ...]:
        return tuple(self._writes.get((id(container), member), ()))

    def written(self) -> Iterator[tuple[Creation | None, Member, tuple[Write, ...]]]:
        """Yield every member that was written, with the creation of its container and its writes, first to last."""
        for (owner, member), writes in self._writes.items():
            yield self._creations.get(owner), member, tuple(writes)

    def members(self, container: Container) -> tuple[Member, ...]:
        """Return every member of `container` that a patch wrote, in the order of first writing."""
        return tuple(member for owner, member in self._writes if owner == id(container))


@dataclass(frozen=True, slots=True)
class WrittenPart:
    """A write of one patch: the place in the patch, what it wrote, and whether nothing has overridden it since."""

    at: DocumentPath
    path: DocumentPath  # of the map or list around it, if the member is gone
    is_standing: bool


def written_below(trace: Trace, holder: Container, path: DocumentPath, patch: int) -> Iterator[WrittenPart]:
    """Yield what a patch wrote below a container, at any depth; what came together with its container is left out."""
    creation = trace.creation(holder)
    for part in written_in(trace, holder, path, patch):
        if creation is None or creation.patch != patch or part.at[: len(creation.at)] != creation.at:
            yield part
    for step, child in _members(holder):
        if isinstance(child, dict | list):
            yield from written_below(trace, child, (*path, step), patch)


def written_in(trace: Trace, holder: Container, path: DocumentPath, patch: int) -> Iterator[WrittenPart]:
    """Yield what a patch wrote or created in a container itself."""
    for member in trace.members(holder):
        writes = trace.writes(holder, member)
        step = _step(holder, member)
        for write in writes:
            if write.patch == patch and not (write.before is ABSENT and write.after is ABSENT):
                is_standing = write is writes[-1] and not same(write.before, write.after)
                yield WrittenPart(write.at, path if step is None else (*path, step), is_standing)
    for step, child in _members(holder):
        creation = trace.creation(child) if isinstance(child, dict | list) else None
        if creation is not None and creation.patch == patch:
            yield WrittenPart(creation.at, (*path, step), is_standing=True)


def _members(holder: Container) -> Iterator[tuple[str | int, Json]]:
    yield from holder.items() if isinstance(holder, dict) else enumerate(holder)


def _step(holder: Container, member: Member) -> str | int | None:
    """Return where a member is that the trace knows by name or value, if it is still there."""
    if isinstance(holder, dict):
        return str(member) if member in holder else None
    scalars = ((index, each) for index, each in enumerate(holder) if not isinstance(each, dict | list))
    return next((index for index, each in scalars if Item.of(each) == member), None)
