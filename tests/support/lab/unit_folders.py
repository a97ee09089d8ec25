"""The unit files of a node in memory, and a clock that tests set."""

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class MemoryUnitFolders:
    """Unit files by name, the links that enable them, and when timers fired."""

    texts: dict[str, str] = field(default_factory=dict)
    links: set[str] = field(default_factory=set)
    stamps: dict[str, float] = field(default_factory=dict)
    now_s: float = 0.0

    def clock_s(self) -> float:
        return self.now_s

    def text(self, name: str) -> str | None:
        return self.texts.get(name)

    def is_enabled(self, name: str) -> bool:
        return name in self.links

    def enabled(self) -> tuple[str, ...]:
        return tuple(sorted(self.links))

    def enable(self, name: str, wanted_by: Sequence[str]) -> None:
        if wanted_by:
            self.links.add(name)

    def disable(self, name: str) -> None:
        self.links.discard(name)

    def fired_at_s(self, name: str) -> float | None:
        return self.stamps.get(name)

    def note_fired(self, name: str) -> None:
        self.stamps[name] = self.now_s
