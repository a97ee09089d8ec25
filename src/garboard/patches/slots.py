"""A list over shared storage, as in Go: the order rules of strategic merge read lists that a merge overwrote in place.

The reference keeps reading the original list while it works on that list's own storage, whose size is the next power of
two. What it then sees decides the order of the outcome in rare but real cases (patches that `kubectl apply` makes), so
the storage is modelled here and nowhere else.
"""

from collections.abc import Sequence
from typing import Self

from garboard.documents import Json


class Slots:
    """A view of the first `length` places of some storage; views made from it may share that storage."""

    __slots__ = ("_length", "_storage")

    def __init__(self, storage: list[Json], length: int) -> None:
        self._storage = storage
        self._length = length

    @classmethod
    def over(cls, values: Sequence[Json]) -> Self:
        """Return a view of fresh storage that holds `values`."""
        capacity = 1 << (len(values) - 1).bit_length() if values else 0
        return cls([*values, *[None] * (capacity - len(values))], len(values))

    def __len__(self) -> int:
        return self._length

    def values(self) -> list[Json]:
        return self._storage[: self._length]

    def append(self, values: Sequence[Json]) -> Self:
        """Return a longer view, on the same storage if the values fit there."""
        length = self._length + len(values)
        if length <= len(self._storage):
            self._storage[self._length : length] = values
            return type(self)(self._storage, length)
        return type(self)([*self.values(), *values, *[None] * length], length)

    def without(self, position: int) -> Self:
        """Return a view one shorter: what follows `position` moves up, and the last place keeps its value."""
        moved = self._storage[position + 1 : self._length]
        self._storage[position : self._length - 1] = moved
        return type(self)(self._storage, self._length - 1)

    def deduplicate(self) -> list[Json]:
        """Drop repeated scalars in place: each later twin is overwritten by the last value. Return what remains."""
        storage, last = self._storage, self._length - 1
        first = 0
        while first < last:
            other = first + 1
            while other <= last:
                if type(storage[first]) is type(storage[other]) and storage[first] == storage[other]:
                    storage[other] = storage[last]
                    last -= 1
                else:
                    other += 1
            first += 1
        return storage[: last + 1]
