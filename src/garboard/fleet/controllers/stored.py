"""Objects as the API server has them: read by field, changed by copying, compared by content."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TypeAlias

from garboard.values import Json, dataclass

Tree: TypeAlias = Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class ObjectId:
    """Which object: its kind, namespace (empty where it has none) and name."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Stored:
    """One version of an object. Its content may be secret and is not shown."""

    tree: Tree

    def __repr__(self) -> str:
        return f"Stored({self.id}@{self.version})"

    def at(self, *path: str) -> Json:
        """Return the value of a field, None where there is none."""
        found: Json = self.tree  # type: ignore[assignment]  # a mapping that is never changed
        for step in path:
            if not isinstance(found, Mapping):
                return None
            found = found.get(step)
        return found

    def text(self, *path: str) -> str:
        found = self.at(*path)
        return found if isinstance(found, str) else ""

    def number(self, *path: str) -> int | None:
        found = self.at(*path)
        return found if isinstance(found, int) and not isinstance(found, bool) else None

    def entries(self, *path: str) -> tuple[dict[str, Json], ...]:
        """Return the mappings of a list."""
        found = self.at(*path)
        return tuple(each for each in found if isinstance(each, dict)) if isinstance(found, list) else ()

    def texts(self, *path: str) -> tuple[str, ...]:
        found = self.at(*path)
        return tuple(each for each in found if isinstance(each, str)) if isinstance(found, list) else ()

    def mapping(self, *path: str) -> dict[str, Json]:
        found = self.at(*path)
        return dict(found) if isinstance(found, Mapping) else {}

    @property
    def id(self) -> ObjectId:
        return ObjectId(self.kind, self.namespace, self.name)

    @property
    def kind(self) -> str:
        return self.text("kind")

    @property
    def name(self) -> str:
        return self.text("metadata", "name")

    @property
    def namespace(self) -> str:
        return self.text("metadata", "namespace")

    @property
    def uid(self) -> str:
        return self.text("metadata", "uid")

    @property
    def version(self) -> str:
        return self.text("metadata", "resourceVersion")

    @property
    def generation(self) -> int:
        return self.number("metadata", "generation") or 0

    @property
    def finalizers(self) -> tuple[str, ...]:
        return self.texts("metadata", "finalizers")

    @property
    def is_deleting(self) -> bool:
        return bool(self.text("metadata", "deletionTimestamp"))

    @property
    def created(self) -> datetime:
        return read_time(self.text("metadata", "creationTimestamp")) or datetime.min.replace(tzinfo=UTC)

    def label(self, name: str) -> str:
        return self.text("metadata", "labels", name)

    def annotation(self, name: str) -> str:
        return self.text("metadata", "annotations", name)

    def edited(self, value: Json, *path: str) -> "Stored":
        """Return a copy with a field set, or removed by None."""
        return Stored(_edited(self.tree, value, path))

    def with_finalizer(self, name: str) -> "Stored":
        if name in self.finalizers:
            return self
        return self.edited([*self.finalizers, name], "metadata", "finalizers")

    def without_finalizer(self, name: str) -> "Stored":
        left: list[Json] = [each for each in self.finalizers if each != name]
        return self.edited(left or None, "metadata", "finalizers")


def _edited(tree: Tree, value: Json, path: tuple[str, ...]) -> dict[str, Json]:
    step, *rest = path
    copied = dict(tree)
    if rest:
        inner = copied.get(step)
        copied[step] = _edited(inner if isinstance(inner, Mapping) else {}, value, tuple(rest))
    elif value is None:
        copied.pop(step, None)
    else:
        copied[step] = value
    return copied


def read_time(text: str) -> datetime | None:
    """Return a moment as Kubernetes writes it; None where it tells none."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC) if text else None
    except ValueError:
        return None


def write_time(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def oldest_first(objects: Iterable[Stored]) -> list[Stored]:
    """Return objects by age; those of the same second by namespace and name."""
    return sorted(objects, key=lambda each: (each.created, each.namespace, each.name))
