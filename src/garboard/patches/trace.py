"""What the patch engine did, noted while it does it: who wrote which member, in which order, over what.

Members are told apart by the identity of the container that holds them, not by their path: strategic merge reorders
lists, and a path that was right when a patch ran may be wrong when the next one has run. Containers seen here are kept
alive, so an identity is never used twice.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self, TypeAlias

from garboard.documents import DocumentPath, Json

Container: TypeAlias = "dict[str, Json] | list[Json]"

BASE = -1  # the number that stands for the document as it was before the first patch


class Absent:
    """The one value that says "there was nothing", which null does not."""

    def __repr__(self) -> str:
        return "absent"


ABSENT = Absent()
JsonOrAbsent: TypeAlias = "Json | Absent"


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
class Birth:
    """Where a container came from: a patch (or the base document) and the place in it."""

    patch: int
    at: DocumentPath


class Trace:
    """The notes of one run of the engine over one document."""

    def __init__(self, base: Json) -> None:
        self.patch = BASE
        self._births: dict[int, Birth] = {}
        self._writes: dict[tuple[int, Member], list[Write]] = {}
        self._alive: list[Container] = []
        self.adopt(base, ())

    def adopt(self, value: Json, at: DocumentPath) -> None:
        """Note that `value`, with everything below it, now comes from `at` in the current patch."""
        if isinstance(value, dict | list):
            self.adopt_one(value, at)
            members = value.items() if isinstance(value, dict) else enumerate(value)
            for key, member in members:
                self.adopt(member, (*at, key))

    def adopt_one(self, container: Container, at: DocumentPath) -> None:
        """Note where `container` itself comes from, and nothing below it."""
        self._births[id(container)] = Birth(self.patch, at)
        self._alive.append(container)

    def wrote(
        self, container: Container, member: Member, at: DocumentPath, before: JsonOrAbsent, after: JsonOrAbsent
    ) -> None:
        """Note that the current patch set `member` of `container` (or removed it: `after` is ABSENT)."""
        self._alive.append(container)
        for value in (before, after):
            if isinstance(value, dict | list):
                self._alive.append(value)
        self._writes.setdefault((id(container), member), []).append(Write(self.patch, at, before, after))

    def birth(self, container: Container) -> Birth | None:
        return self._births.get(id(container))

    def writes(self, container: Container, member: Member) -> tuple[Write, ...]:
        return tuple(self._writes.get((id(container), member), ()))

    def written(self) -> Iterator[tuple[Birth | None, Member, tuple[Write, ...]]]:
        """Yield every member that was written, with the birth of its container and its writes, first to last."""
        for (owner, member), writes in self._writes.items():
            yield self._births.get(owner), member, tuple(writes)

    def members(self, container: Container) -> tuple[Member, ...]:
        """Return every member of `container` that a patch wrote, in the order of first writing."""
        return tuple(member for owner, member in self._writes if owner == id(container))
