"""What `systemctl` of a node is asked and answers, in systemd's words. Pure."""

from dataclasses import dataclass
from enum import StrEnum

# systemd's own codes for `is-active` and `status` of a unit that does not run, and of one that does not exist.
NOT_ACTIVE, NO_SUCH_UNIT = 3, 4


class Verb(StrEnum):
    """What can be asked of a unit."""

    START = "start"
    STOP = "stop"
    RESTART = "restart"
    IS_ACTIVE = "is-active"
    IS_ENABLED = "is-enabled"
    ENABLE = "enable"
    DISABLE = "disable"
    STATUS = "status"


QUESTIONS = frozenset({Verb.IS_ACTIVE, Verb.IS_ENABLED, Verb.STATUS})
SWITCHES = frozenset({Verb.ENABLE, Verb.DISABLE})
# Switches count for these too, with --now.
BEGINNINGS = frozenset({Verb.START, Verb.RESTART, Verb.ENABLE})
ENDINGS = frozenset({Verb.STOP, Verb.RESTART, Verb.DISABLE})


@dataclass(frozen=True, slots=True)
class UnitState:
    """What the supervisor knows of a unit: whether it should run, the process that does, and how it ended last."""

    wanted: bool = False
    enabled: bool = True
    pid: int | None = None
    is_oneshot: bool = False
    has_failed: bool = False
    remains: bool = False  # it has ended well, and counts as active

    @property
    def word(self) -> str:
        if self.pid is not None:
            return "activating" if self.is_oneshot else "active"
        if self.wanted:
            return "activating"
        if self.has_failed:
            return "failed"
        return "active" if self.remains else "inactive"


@dataclass(frozen=True, slots=True)
class SystemctlAnswer:
    """What `systemctl` prints and its exit status."""

    text: str
    status: int = 0


def unit_name(text: str) -> str:
    """Strip what people may write after a service's name."""
    return text.removesuffix(".service")


def describe(name: str, verb: Verb, state: UnitState | None) -> SystemctlAnswer:
    """Answer a question about a unit as systemctl does."""
    shown = name if name.endswith(".timer") else f"{name}.service"
    if state is None:
        return SystemctlAnswer(f"Unit {shown} could not be found.\n", NO_SUCH_UNIT)
    if verb is Verb.IS_ENABLED:
        return SystemctlAnswer("enabled\n") if state.enabled else SystemctlAnswer("disabled\n", 1)
    status = 0 if state.word == "active" else NOT_ACTIVE
    if verb is Verb.IS_ACTIVE:
        return SystemctlAnswer(f"{state.word}\n", status)
    enabled = "enabled" if state.enabled else "disabled"
    text = f"● {shown}\n     Loaded: loaded ({enabled})\n     Active: {state.word}\n"
    return SystemctlAnswer(text + (f"   Main PID: {state.pid}\n" if state.pid else ""), status)
