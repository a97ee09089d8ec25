"""Unit files of systemd as far as a lab's `systemctl` knows them: simple and oneshot services, and timers. Pure.

What is not known is ignored, as systemd does with keys, unless the unit would do something else without it.
"""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import TypeAlias

from garboard.errors import BadDocument

Section: TypeAlias = dict[str, list[str]]

# systemd starts no service again before that, unless its unit says so.
RESTART_AFTER_S = 0.1
_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)\s*")
_SECONDS = {"": 1.0, "s": 1.0, "sec": 1.0, "ms": 0.001, "m": 60.0, "min": 60.0, "h": 3600.0, "hr": 3600.0}
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?: UTC)?")
_SPAN_KEYS = ("OnActiveSec", "OnUnitInactiveSec")
_MOMENT_KEYS = ("OnCalendar", *_SPAN_KEYS)
_TRUE = ("1", "yes", "true", "on")


class BadUnitFile(BadDocument):
    """A unit file that the lab's `systemctl` cannot follow."""

    default_class = "bad-unit-file"


class Restart(StrEnum):
    """When a service that has ended is started again."""

    NO = "no"
    ON_FAILURE = "on-failure"
    ALWAYS = "always"


@dataclass(frozen=True, slots=True)
class Unit:
    """A service: the shell lines that become its program, and when and after how long it is started again."""

    name: str
    script: str
    restart_after_s: float
    restart: Restart = Restart.ALWAYS
    is_oneshot: bool = False
    remains: bool = False
    wanted_by: tuple[str, ...] = ()

    def is_started_again(self, status: int) -> bool:
        return self.restart is Restart.ALWAYS or (self.restart is Restart.ON_FAILURE and status != 0)


@dataclass(frozen=True, slots=True)
class TimerUnit:
    """A timer: the service that it starts, and the moment, in seconds since 1970; None if it has none.

    `after_s` the timer was started it starts the service, too, and `again_s` after that has ended.
    """

    name: str
    service: str
    at_s: float | None
    is_persistent: bool = False
    wanted_by: tuple[str, ...] = ()
    after_s: float | None = None
    again_s: float | None = None

    def is_due(self, base_s: float, now_s: float) -> bool:
        """Say whether it fires; `base_s` is when it fired last or, if it never did, when it was first started."""
        return self.at_s is not None and base_s < self.at_s <= now_s

    def has_passed(self, now_s: float) -> bool:
        return self.at_s is not None and now_s >= self.at_s


def read_service(name: str, text: str) -> Unit:
    """Read the unit file of the service `name`."""
    sections = _sections(text)
    service = sections.get("Service", {})
    kind, restart = _last(service, "Type", "simple"), _last(service, "Restart", "no")
    if kind not in ("simple", "exec", "oneshot"):
        raise BadUnitFile(f"{name}.service: the lab knows no Type={kind}", hint="write a simple or a oneshot service")
    if restart not in set(Restart):
        raise BadUnitFile(f"{name}.service: the lab knows no Restart={restart}", hint="write no, on-failure or always")
    commands = service.get("ExecStart", [])
    is_oneshot = kind == "oneshot"
    if not commands or (len(commands) > 1 and not is_oneshot):
        raise BadUnitFile(f"{name}.service has {len(commands)} lines of ExecStart=", hint="write one")
    if is_oneshot and restart == Restart.ALWAYS:
        raise BadUnitFile(f"{name}.service: a oneshot service has no Restart=always", hint="write on-failure")
    return Unit(
        name=name,
        script=_script(name, [*service.get("ExecStartPre", []), *commands], service.get("Environment", [])),
        restart_after_s=_seconds(_last(service, "RestartSec", str(RESTART_AFTER_S))),
        restart=Restart(restart),
        is_oneshot=is_oneshot,
        remains=_last(service, "RemainAfterExit", "no") in _TRUE,
        wanted_by=_wanted_by(sections),
    )


def read_timer(name: str, text: str) -> TimerUnit:
    """Read the unit file of the timer `name`."""
    sections = _sections(text)
    timer = sections.get("Timer", {})
    moments = timer.get("OnCalendar", [])
    found = _MOMENT.fullmatch(moments[0]) if len(moments) == 1 else None
    unknown = [each for each in timer if each.startswith("On") and each not in _MOMENT_KEYS]
    repeats = {key: _once(name, timer, key) for key in _SPAN_KEYS}
    if (moments and found is None) or unknown or not (moments or any(repeats.values())):
        raise BadUnitFile(
            f"{name}.timer: the lab knows one moment, {' and '.join(_SPAN_KEYS)}",
            hint="write OnCalendar=2026-11-16 22:10:00 UTC, or OnActiveSec=15 with OnUnitInactiveSec=15",
        )
    return TimerUnit(
        name=name,
        service=_last(timer, "Unit", f"{name}.service").removesuffix(".service"),
        at_s=datetime.strptime(found[1], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC).timestamp() if found else None,
        is_persistent=_last(timer, "Persistent", "no") in _TRUE,
        wanted_by=_wanted_by(sections),
        after_s=repeats["OnActiveSec"],
        again_s=repeats["OnUnitInactiveSec"],
    )


def _once(name: str, timer: Section, key: str) -> float | None:
    spans = timer.get(key, [])
    if len(spans) > 1:
        raise BadUnitFile(f"{name}.timer has {len(spans)} lines of {key}=", hint="write one")
    return _seconds(spans[0]) if spans else None


def _sections(text: str) -> dict[str, Section]:
    """Split a unit file; an empty value clears those before it, and a line that ends with a backslash goes on."""
    sections: dict[str, Section] = {}
    current: Section = {}
    for line in re.sub(r"\\\n", " ", text).splitlines():
        stripped = line.strip()
        if not stripped or stripped[0] in "#;":
            continue
        if stripped.startswith("[") and stripped.endswith("]"):
            current = sections.setdefault(stripped[1:-1], {})
            continue
        key, _, value = (part.strip() for part in stripped.partition("="))
        if value:
            current.setdefault(key, []).append(value)
        else:
            current.pop(key, None)
    return sections


def _last(section: Section, key: str, default: str) -> str:
    return section.get(key, [default])[-1]


def _wanted_by(sections: dict[str, Section]) -> tuple[str, ...]:
    return tuple(each for line in sections.get("Install", {}).get("WantedBy", []) for each in line.split())


def _script(name: str, commands: Sequence[str], environment: Sequence[str]) -> str:
    variables = [word for line in environment for word in _words(name, line)]
    lines = [f"export {shlex.quote(each)}" for each in variables]
    programs = [_words(name, line) for line in commands]
    for words in programs:
        if not words[0].startswith("/"):
            raise BadUnitFile(f"{name}.service: {words[0]} is no absolute path", hint="write ExecStart=/usr/bin/…")
    *first, last = (shlex.join(words) for words in programs)
    return "\n".join([*lines, *(f"{each} || exit" for each in first), f"exec {last}", ""])


def _words(name: str, line: str) -> list[str]:
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise BadUnitFile(f"{name}.service: {line!r}: {error}", hint="close its quotes") from None
    plain = [re.sub(r"%%|\$\$", "", each) for each in words]
    if any("%" in each or "$" in each for each in plain) or ";" in words:
        raise BadUnitFile(
            f"{name}.service: the lab knows no specifiers, variables and `;` in {line!r}", hint="write plain words"
        )
    return [each.replace("%%", "%").replace("$$", "$") for each in words]


def _seconds(span: str) -> float:
    if span == "infinity" or not re.fullmatch(rf"(?:{_SPAN.pattern})+", span):
        raise BadUnitFile(f"{span!r} is no span of time that the lab knows", hint="write seconds, or 1min 30s")
    parts = _SPAN.findall(span)
    if any(unit not in _SECONDS for _, unit in parts):
        raise BadUnitFile(f"{span!r} is no span of time that the lab knows", hint="write seconds, or 1min 30s")
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)
