"""What a controller decides to do: writes of single objects, each of the version that was looked at."""

from datetime import datetime, timedelta
from typing import Literal, TypeAlias

from garboard.fleet.controllers.stored import ObjectId, Stored
from garboard.values import dataclass


@dataclass(frozen=True, slots=True)
class Create:
    """Create an object; one of the name that is there already is as good."""

    new: Stored

    @property
    def id(self) -> ObjectId:
        return self.new.id


@dataclass(frozen=True, slots=True)
class Replace:
    """Replace an object as it was looked at; another version is a conflict."""

    new: Stored

    @property
    def id(self) -> ObjectId:
        return self.new.id


@dataclass(frozen=True, slots=True)
class ReplaceStatus:
    """Replace the status of an object as it was looked at; another version is a conflict."""

    new: Stored

    @property
    def id(self) -> ObjectId:
        return self.new.id


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete the version of an object that was looked at."""

    old: Stored

    @property
    def id(self) -> ObjectId:
        return self.old.id


@dataclass(frozen=True, slots=True)
class RunProvision:
    """See to it that a provision is under way, or a deprovision: started, or still running."""

    of: Stored

    @property
    def id(self) -> ObjectId:
        return self.of.id


@dataclass(frozen=True, slots=True)
class StopProvision:
    """See to it that nothing runs any more for a provision that was given up."""

    id: ObjectId


Action: TypeAlias = Create | Replace | ReplaceStatus | Delete | RunProvision | StopProvision


@dataclass(frozen=True, slots=True)
class Announcement:
    """An Event about an object."""

    about: Stored
    type: Literal["Normal", "Warning"]
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Decision:
    """Actions in their order, and when to look again although nothing has changed.

    With `needs_fresh`, the actions were decided from what may be older than a write of somebody else that forbids them:
    what they depend on is read anew, and decided again, before they are carried out.
    """

    actions: tuple[Action, ...] = ()
    announcements: tuple[Announcement, ...] = ()
    again_after: timedelta | None = None
    needs_fresh: bool = False


class Deciding:
    """Collects a decision."""

    def __init__(self, now: datetime) -> None:
        self.now = now
        self._actions: list[Action] = []
        self._announcements: list[Announcement] = []
        self._again: timedelta | None = None
        self._needs_fresh = False

    def do(self, *actions: Action, needs_fresh: bool = False) -> None:
        self._actions += actions
        self._needs_fresh |= needs_fresh

    def announce(self, about: Stored, type_: Literal["Normal", "Warning"], reason: str, message: str) -> None:
        self._announcements.append(Announcement(about, type_, reason, message))

    def look_again(self, after: timedelta) -> None:
        self._again = after if self._again is None else min(self._again, after)

    def status(self, before: Stored, after: Stored) -> bool:
        """Write a status if it changes; say whether it does."""
        if before.at("status") == after.at("status"):
            return False
        self.do(ReplaceStatus(after))
        return True

    def replace(self, before: Stored, after: Stored) -> bool:
        """Write an object if it changes; say whether it does."""
        if before.tree == after.tree:
            return False
        self.do(Replace(after))
        return True

    @property
    def is_idle(self) -> bool:
        return not self._actions

    def decision(self) -> Decision:
        return Decision(tuple(self._actions), tuple(self._announcements), self._again, self._needs_fresh)
