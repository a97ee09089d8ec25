"""What speaks against a change of an attribute, and what is known when that is decided."""

from garboard.change.codes import CODES, Weight
from garboard.change.configuration import StoredConfiguration
from garboard.change.snapshot import ClusterSnapshot
from garboard.values import Json, dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeFinding:
    """One thing to say about an attribute; without a code it is allowed, and the reason says what it does."""

    code: str = ""
    reason: str = ""
    route: str = ""
    follow_ups: tuple[str, ...] = ()
    drains: tuple[str, ...] = ()  # nodes that have to be emptied for it
    found: Json = None  # what a node has, if the finding is about that and not about a change

    @property
    def weight(self) -> Weight:
        return CODES[self.code].weight if self.code else Weight.ALLOWED


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeContext:
    """The cluster as it was seen, its configuration, and the one that is asked for."""

    snapshot: ClusterSnapshot
    current: StoredConfiguration
    target: StoredConfiguration
