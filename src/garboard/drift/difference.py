"""A difference between what is declared, on disk and running, as a value."""

from enum import StrEnum

from garboard.documents import Json, document_without_passwords, without_passwords, write_json
from garboard.drift.leaves import LeafPath, show_leaf
from garboard.patches.json_values import ABSENT, Absent, JsonOrAbsent
from garboard.values import dataclass


class DriftKind(StrEnum):
    """How a difference came about, as far as can be told."""

    HAND_EDIT = "hand-edit"  # nothing explains it
    PATCH = "patch"  # on disk as recorded or given patches have it
    PENDING = "pending"  # declared since the file was written, and not on disk yet
    STALE = "stale"  # on disk, and not running yet
    ENVIRONMENTAL = "environmental"  # where and how the component was rendered, not what for
    COSMETIC = "cosmetic"  # it means the same


@dataclass(frozen=True, slots=True)
class Seen:
    """A value in one of the places, and what put it there; `is_known` is false for a place that was not looked at."""

    value: JsonOrAbsent = ABSENT
    source: str = ""
    is_known: bool = True

    @property
    def text(self) -> str:
        """The value for people, as JSON, without passwords of URLs."""
        return "not there" if isinstance(self.value, Absent) else without_passwords(write_json(self.value).rstrip())

    def as_json(self) -> Json:
        """Return it for a JSON report; a value that is not there, or not known, is left out."""
        content: dict[str, Json] = (
            {} if isinstance(self.value, Absent) else {"value": document_without_passwords(self.value)}
        )
        return {**content, "isKnown": self.is_known, "source": self.source}


NOT_LOOKED_AT = Seen(is_known=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One field of one component that is not the same everywhere. The path of a whole file is `.`."""

    component: str
    where: str  # the file or the object
    path: LeafPath
    kind: DriftKind
    rendered: Seen = NOT_LOOKED_AT  # without patches
    declared: Seen = NOT_LOOKED_AT  # with patches
    on_disk: Seen = NOT_LOOKED_AT
    running: Seen = NOT_LOOKED_AT
    reason: str = ""

    @property
    def field(self) -> str:
        return show_leaf(self.path)

    @property
    def actual(self) -> Seen:
        """What there is: on disk, or of something that is not on disk, what runs."""
        return self.on_disk if self.on_disk.is_known else self.running

    @property
    def is_drift(self) -> bool:
        """Whether something is not as it is declared, other than by surroundings or spelling."""
        return self.kind in (DriftKind.HAND_EDIT, DriftKind.PENDING, DriftKind.STALE)

    def as_json(self) -> dict[str, Json]:
        places = {
            "rendered": self.rendered,
            "declared": self.declared,
            "onDisk": self.on_disk,
            "running": self.running,
        }
        return {
            "component": self.component,
            "where": self.where,
            "field": self.field,
            "kind": self.kind.value,
            "reason": self.reason,
            **{name: seen.as_json() for name, seen in places.items() if seen.is_known},
        }
