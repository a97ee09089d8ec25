"""When to ask a silent peer whether it is still there. Pure: the time comes in, the decision goes out."""

from dataclasses import dataclass
from enum import Enum, auto


@dataclass(frozen=True, slots=True)
class KeepaliveConfig:
    """Ping after `time_s` of silence, give up `timeout_s` later; `without_calls`: also while no call is open."""

    time_s: float
    timeout_s: float = 20.0
    without_calls: bool = True


class KeepaliveAction(Enum):
    WAIT = auto()
    PING = auto()
    GIVE_UP = auto()


class Keepalive:
    """Follows one connection; ask `decide` at the moment it named last."""

    def __init__(self, config: KeepaliveConfig, now: float) -> None:
        self._config = config
        self._time_s = config.time_s
        self._heard_at = now
        self._pinged_at: float | None = None

    def heard(self, now: float) -> None:
        """Anything at all arrived: the peer lives."""
        self._heard_at = now
        self._pinged_at = None

    def ask(self, now: float) -> bool:
        """Somebody doubts that the peer lives: whether to ping it now, and not when it has been silent for long."""
        if self._pinged_at is not None:
            return False
        self._pinged_at = now
        return True

    def slow_down(self) -> None:
        """The peer finds our pings too many: twice the time from here on."""
        self._time_s *= 2

    def decide(self, now: float, *, has_calls: bool) -> tuple[KeepaliveAction, float]:
        """What to do now, and when to ask again."""
        if self._pinged_at is not None:
            expires_at = self._pinged_at + self._config.timeout_s
            return (KeepaliveAction.GIVE_UP if now >= expires_at else KeepaliveAction.WAIT), expires_at
        due_at = self._heard_at + self._time_s
        if now < due_at:
            return KeepaliveAction.WAIT, due_at
        if not has_calls and not self._config.without_calls:
            return KeepaliveAction.WAIT, now + self._time_s
        self._pinged_at = now
        return KeepaliveAction.PING, now + self._config.timeout_s
