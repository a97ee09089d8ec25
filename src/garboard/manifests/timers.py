"""Timers of systemd: a command that runs once at a moment, also if the machine was off then; or again and again. Pure.

Unit and timer are files, because a transient unit vanishes when the machine starts again. The timer is outside of our
process: it fires whatever has become of that, and of the cluster.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from garboard.errors import InvalidValue
from garboard.model.names import is_plain_word
from garboard.values import dataclass

UNIT_FOLDER = "/etc/systemd/system"
_NAME = re.compile(r"garboard-[a-z0-9]+(?:-[a-z0-9]+)*")

_SERVICE = """\
# Written by garboard, and removed when it is no longer needed.
[Unit]
Description={summary}
After=network-online.target
Wants=network-online.target

[Service]
Type=oneshot
ExecStart={command}
"""
_TIMER = """\
# Written by garboard, and removed when it is no longer needed.
[Unit]
Description=When to: {summary}

[Timer]
{moments}
AccuracySec=1s

[Install]
WantedBy=timers.target
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedCommand:
    """A command that systemd runs `at` a moment, or again and again; `name` is that of its units, without endings.

    With `every_s` it is run so long after the timer was started, and after it has ended; `spread_s` more at most, so
    that machines which start together do not ask together.
    """

    name: str
    summary: str
    command: tuple[str, ...]
    at: datetime | None = None
    every_s: int = 0
    spread_s: int = 0


def unit_paths(name: str) -> tuple[str, str]:
    """Return where the service and the timer of a name are."""
    return f"{UNIT_FOLDER}/{name}.service", f"{UNIT_FOLDER}/{name}.timer"


def timer_files(timed: TimedCommand) -> dict[str, bytes]:
    """Return the unit files of a command by their path, the service first: the timer needs it."""
    _check(timed)
    summary, (service, timer) = timed.summary.replace("%", "%%"), unit_paths(timed.name)
    return {
        service: _SERVICE.format(summary=summary, command=" ".join(timed.command)).encode(),
        timer: _TIMER.format(summary=summary, moments="\n".join(_moments(timed))).encode(),
    }


def _moments(timed: TimedCommand) -> Iterator[str]:
    if timed.at is not None:
        yield f"OnCalendar={calendar_time(timed.at)}"
        yield "Persistent=true"
    if timed.every_s:
        yield f"OnActiveSec={timed.every_s}"
        yield f"OnUnitInactiveSec={timed.every_s}"
    if timed.spread_s:
        yield f"RandomizedDelaySec={timed.spread_s}"


def calendar_time(moment: datetime) -> str:
    """Return a moment as systemd writes it: whole seconds, never earlier, and in UTC whatever the machine's zone is."""
    whole = moment.astimezone(UTC)
    if whole.microsecond:
        whole = whole.replace(microsecond=0) + timedelta(seconds=1)
    return f"{whole:%Y-%m-%d %H:%M:%S} UTC"


def _check(timed: TimedCommand) -> None:
    if not _NAME.fullmatch(timed.name):
        raise InvalidValue(f"{timed.name!r} is no name of a timer of ours", hint="such as garboard-revert")
    if timed.at is None and timed.every_s <= 0:
        raise InvalidValue(f"{timed.name} would never run", hint="give it a moment, or how often it runs")
    if timed.at is not None and timed.at.tzinfo is None:
        raise InvalidValue(f"{timed.at} is no moment without its time zone")
    if not timed.summary.isprintable() or not timed.summary or timed.summary.endswith("\\"):
        raise InvalidValue(f"{timed.summary!r} is no line of a unit file")
    if not timed.command or not timed.command[0].startswith("/") or not all(map(is_plain_word, timed.command)):
        raise InvalidValue(
            f"{' '.join(timed.command)!r} is no command for a unit file",
            hint="an absolute path, and words of letters, digits and _ . / = : , - alone",
        )
