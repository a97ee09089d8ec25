"""The objects of one selection as they were told last, with indexes; every change of it is a delta."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from garboard.documents import Json
from garboard.values import dataclass


class NamespacedName(NamedTuple):
    """Which object of a kind; `namespace` is empty for a cluster-scoped one."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


# The values under which an index finds an object.
IndexKeys: TypeAlias = Callable[[dict[str, Json]], Iterable[str]]


def key_of(content: dict[str, Json]) -> NamespacedName:
    metadata = content.get("metadata")
    named = metadata if isinstance(metadata, dict) else {}
    return NamespacedName(str(named.get("namespace") or ""), str(named.get("name") or ""))


@dataclass(frozen=True, slots=True)
class Delta:
    """One object before and after a change: `before` is None for a new one, `after` for one that is gone."""

    key: NamespacedName
    before: dict[str, Json] | None
    after: dict[str, Json] | None


class ObjectStore:
    """What readers find here is shared: whoever wants to change an object copies it."""

    def __init__(self, indexes: Mapping[str, IndexKeys] = MappingProxyType({})) -> None:
        self._objects: dict[NamespacedName, dict[str, Json]] = {}
        self._index_keys = dict(indexes)
        self._indexes: dict[str, dict[str, set[NamespacedName]]] = {name: defaultdict(set) for name in indexes}

    def __len__(self) -> int:
        return len(self._objects)

    def find(self, namespace: str, name: str) -> dict[str, Json] | None:
        return self._objects.get(NamespacedName(namespace, name))

    def sorted_keys(self) -> tuple[NamespacedName, ...]:
        """Return the keys of all objects, in order."""
        return tuple(sorted(self._objects))

    def all(self) -> tuple[dict[str, Json], ...]:
        """Return all objects in the order of their keys."""
        return tuple(self._objects[key] for key in sorted(self._objects))

    def indexed(self, index: str, value: str) -> tuple[dict[str, Json], ...]:
        """Return the objects that an index finds under a value, in the order of their keys."""
        return tuple(self._objects[key] for key in sorted(self._indexes[index].get(value, ())))

    def put(self, content: dict[str, Json]) -> Delta | None:
        """Keep an object as it is now; None if it is the version that is kept already."""
        key = key_of(content)
        before = self._objects.get(key)
        if before == content:
            return None
        self._unindex(key, before)
        self._objects[key] = content
        for name, keys in self._index_keys.items():
            for value in keys(content):
                self._indexes[name][value].add(key)
        return Delta(key, before, content)

    def drop(self, key: NamespacedName) -> Delta | None:
        """Forget an object; None if it is not here."""
        before = self._objects.pop(key, None)
        self._unindex(key, before)
        return Delta(key, before, None) if before is not None else None

    def swap(self, contents: Iterable[dict[str, Json]]) -> tuple[Delta, ...]:
        """Become exactly these objects; what differs is told, deletions first."""
        listed = {key_of(each): each for each in contents}
        gone = [self.drop(key) for key in self.sorted_keys() if key not in listed]
        put = [self.put(each) for each in listed.values()]
        return tuple(each for each in (*gone, *put) if each is not None)

    def _unindex(self, key: NamespacedName, content: dict[str, Json] | None) -> None:
        if content is None:
            return
        for name, keys in self._index_keys.items():
            index = self._indexes[name]
            for value in keys(content):
                index[value].discard(key)
                if not index[value]:
                    del index[value]
