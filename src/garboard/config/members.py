"""Typed access to a decoded document: its types have been checked, and what is missing was not given."""

from collections.abc import Mapping
from dataclasses import field

from garboard.documents import Json
from garboard.model.duration import Duration
from garboard.values import dataclass


@dataclass(frozen=True, slots=True)
class Members:
    """The members of one object; reading an absent one gives the default."""

    tree: Mapping[str, Json] = field(default_factory=dict)

    def __contains__(self, name: str) -> bool:
        return name in self.tree

    def text(self, name: str, default: str = "") -> str:
        value = self.tree.get(name)
        return value if isinstance(value, str) else default

    def number(self, name: str, default: int = 0) -> int:
        value = self.tree.get(name)
        return value if isinstance(value, int) else default

    def flag(self, name: str, *, default: bool = False) -> bool:
        value = self.tree.get(name)
        return value if isinstance(value, bool) else default

    def choice(self, name: str) -> bool | None:
        """A switch that may be left to others to decide."""
        value = self.tree.get(name)
        return value if isinstance(value, bool) else None

    def duration(self, name: str, default: Duration) -> Duration:
        value = self.tree.get(name)
        return Duration.parse(value) if isinstance(value, str) else default

    def texts(self, name: str) -> tuple[str, ...]:
        value = self.tree.get(name)
        return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()

    def object(self, name: str) -> "Members":
        value = self.tree.get(name)
        return Members(value if isinstance(value, dict) else {})

    def objects(self, name: str) -> "tuple[Members, ...]":
        value = self.tree.get(name)
        return tuple(Members(item) for item in value if isinstance(item, dict)) if isinstance(value, list) else ()


def without_empty(**members: Json) -> dict[str, Json]:
    """Return the members that say something; zero values are what a decoded document leaves out too."""
    return {name: value for name, value in members.items() if value not in (None, "", 0, False) and value != []}
