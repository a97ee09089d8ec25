"""The services of a running node: each is kept running by a task, and `systemctl` in the node changes that."""

import asyncio
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from garboard.documents import Json
from garboard.lab.units import UNITS, Answer, Unit, UnitState, Verb, describe, unit_name

STOP_WITHIN_S = 10.0


class Service(Protocol):
    """A program that runs, as `garboard.host.services` starts it."""

    @property
    def pid(self) -> int: ...
    async def wait(self) -> int: ...
    async def first_line(self, timeout_s: float) -> str: ...
    def kill(self) -> None: ...


class Services(Protocol):
    """What the supervisor asks of the machine; the module `garboard.host.services` satisfies it."""

    async def start_service(self, command: Sequence[str], *, log: Path, stdin: bytes | None = None) -> Service: ...
    async def run_briefly(self, command: Sequence[str], stdin: str = "") -> tuple[int, str]: ...
    def child_of(self, pid: int) -> int | None: ...
    def send_signal(self, pid: int, number: int) -> bool: ...


@dataclass(slots=True)
class RunningUnit:
    """A unit, and while it should run the task that keeps it running; `door` is the nsenter in front of it."""

    unit: Unit
    state: UnitState = field(default_factory=UnitState)
    door: Service | None = None
    keeper: asyncio.Task[None] | None = None


class Units:
    """The services of one node; `enter` turns a script into a command that runs inside it."""

    def __init__(self, services: Services, enter: Callable[[str], list[str]], log: Callable[[str], Path]) -> None:
        self._services, self._enter, self._log = services, enter, log
        self._units = {name: RunningUnit(unit) for name, unit in UNITS.items()}

    def words(self) -> dict[str, Json]:
        """The state of each unit in a word."""
        return {name: unit.state.word for name, unit in self._units.items()}

    def forget(self) -> None:
        """Keep nothing running any more; the node itself is gone."""
        for unit in self._units.values():
            if unit.keeper:
                unit.keeper.cancel()

    async def systemctl(self, arguments: Sequence[str]) -> Answer:
        """Answer a call of `systemctl` in the node."""
        words = [each for each in arguments if not each.startswith("-")]
        if not words or words[0] in {"daemon-reload", "reset-failed"}:
            return Answer("")
        if words[0] not in set(Verb) or len(words) < 2:
            return Answer(f"Unknown command verb {words[0]}.\n", 1)
        verb, name = Verb(words[0]), unit_name(words[1])
        unit = self._units.get(name)
        if unit is None or verb in {Verb.IS_ACTIVE, Verb.IS_ENABLED, Verb.STATUS}:
            return describe(name, verb, unit.state if unit else None)
        await self._change(unit, verb, now="--now" in arguments)
        return Answer("")

    async def _change(self, unit: RunningUnit, verb: Verb, *, now: bool) -> None:
        if verb in {Verb.ENABLE, Verb.DISABLE}:
            unit.state = replace(unit.state, enabled=verb is Verb.ENABLE)
            verb = Verb.START if verb is Verb.ENABLE else Verb.STOP
            if not now:
                return
        if verb in {Verb.STOP, Verb.RESTART}:
            await self._stop(unit)
        if verb in {Verb.START, Verb.RESTART} and not unit.state.wanted:
            self.start(unit.unit.name)
            # As systemd does for a simple service: the call returns once the program runs.
            while unit.state.wanted and unit.state.pid is None:
                await asyncio.sleep(0.01)

    def start(self, name: str) -> None:
        """Have a unit run from now on."""
        unit = self._units[name]
        unit.state = replace(unit.state, wanted=True)
        unit.keeper = asyncio.get_running_loop().create_task(self._keep(unit))

    async def _keep(self, unit: RunningUnit) -> None:
        while True:
            unit.door = await self._services.start_service(self._enter(unit.unit.script), log=self._log(unit.unit.name))
            unit.state = replace(unit.state, pid=await self._behind(unit.door))
            await unit.door.wait()
            unit.state = replace(unit.state, pid=None)
            await asyncio.sleep(unit.unit.restart_after_s)

    async def _behind(self, door: Service) -> int | None:
        """Return the process behind nsenter, which forks to enter a process namespace; None if it ended at once."""
        ended = asyncio.ensure_future(door.wait())
        try:
            while not ended.done():
                if pid := self._services.child_of(door.pid):
                    return pid
                await asyncio.sleep(0.01)
        finally:
            ended.cancel()
        return None

    async def _stop(self, unit: RunningUnit) -> None:
        if unit.keeper:
            unit.keeper.cancel()
        state, unit.state = unit.state, replace(unit.state, wanted=False, pid=None)
        if state.pid is None or unit.door is None:
            return
        self._services.send_signal(state.pid, signal.SIGTERM)
        try:
            async with asyncio.timeout(STOP_WITHIN_S):
                await unit.door.wait()
        except TimeoutError:
            self._services.send_signal(state.pid, signal.SIGKILL)
