"""The units of a node: a task keeps each service running as systemd would, and `systemctl` in the node changes that."""

import asyncio
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from garboard.documents import Json
from garboard.errors import GarboardError
from garboard.lab.node_units import UnitFolders
from garboard.lab.systemctl import (
    BEGINNINGS,
    ENDINGS,
    QUESTIONS,
    SWITCHES,
    SystemctlAnswer,
    UnitState,
    Verb,
    describe,
    unit_name,
)
from garboard.lab.timers import Timers
from garboard.lab.unit_files import TimerUnit, Unit, read_service, read_timer

KUBELET = """\
[ -f /var/lib/kubelet/kubeadm-flags.env ] && . /var/lib/kubelet/kubeadm-flags.env
[ -f /etc/default/kubelet ] && . /etc/default/kubelet
exec /usr/bin/kubelet --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf \
--kubeconfig=/etc/kubernetes/kubelet.conf --config=/var/lib/kubelet/config.yaml \
$KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
"""

CONTAINERD_SOCKET = "/run/containerd/containerd.sock"
STOP_WITHIN_S = 10.0


UNITS = {
    "containerd": Unit("containerd", "exec containerd --config /etc/containerd/config.toml\n", 0.5),
    # kubeadm's own drop-in says 10 s; a lab has no reason to let people wait.
    "kubelet": Unit("kubelet", KUBELET, 1.0),
}


class NodeService(Protocol):
    """A program that runs, as `garboard.host.services` starts it."""

    @property
    def pid(self) -> int: ...
    async def wait(self) -> int: ...
    async def first_line(self, timeout_s: float) -> str: ...
    def kill(self) -> None: ...


class Services(Protocol):
    """What the supervisor asks of the machine; the module `garboard.host.services` satisfies it."""

    async def start_service(self, command: Sequence[str], *, log: Path, stdin: bytes | None = None) -> NodeService: ...
    async def run_briefly(self, command: Sequence[str], stdin: str = "") -> tuple[int, str]: ...
    def child_of(self, pid: int) -> int | None: ...
    def send_signal(self, pid: int, number: int) -> bool: ...


@dataclass(slots=True)
class RunningUnit:
    """A unit, and while it should run the task that keeps it running and the `nsenter` that is its parent."""

    unit: Unit
    state: UnitState = field(default_factory=UnitState)
    nsenter: NodeService | None = None
    task: asyncio.Task[None] | None = None
    has_ended: bool = False  # at least once since it was started


class Units:
    """The services and timers of one node; `enter` turns a script into a command that runs inside it."""

    def __init__(
        self,
        services: Services,
        enter: Callable[[str], list[str]],
        log: Callable[[str], Path],
        folders: UnitFolders,
        clock_s: Callable[[], float] = time.time,
    ) -> None:
        self._services, self._enter, self._log, self._folders = services, enter, log, folders
        self._units = {name: RunningUnit(unit) for name, unit in UNITS.items()}
        self._timers = Timers(folders, self._fire, clock_s, self._is_running)

    def words(self) -> dict[str, Json]:
        """The state of each unit in a word."""
        timers = dict.fromkeys((f"{name}.timer" for name in self._timers.names()), "active")
        return {**{name: unit.state.word for name, unit in self._units.items()}, **timers}

    def forget(self) -> None:
        """Keep nothing running any more; the node itself is gone."""
        self._timers.forget()
        for unit in self._units.values():
            if unit.task:
                unit.task.cancel()

    def start_enabled(self) -> None:
        """Start what the node has enabled, as a machine does when it starts."""
        for name in self._folders.enabled():
            self._attempt(name)

    def _is_running(self, service: str) -> bool:
        unit = self._units.get(service)
        return unit is not None and unit.state.wanted

    def _fire(self, service: str) -> None:
        self._attempt(f"{service}.service")

    def _attempt(self, name: str) -> None:
        """Start a unit that nobody waits for."""
        with _logged(name):
            if name.endswith(".timer"):
                timer = self._timer(name)
                if timer is not None:
                    self._timers.start(timer)
                return
            unit = self._service(unit_name(name))
            if unit is not None and not unit.state.wanted:
                self.start(unit.unit.name)

    async def systemctl(self, arguments: Sequence[str]) -> SystemctlAnswer:
        """Answer a call of `systemctl` in the node."""
        words = [each for each in arguments if not each.startswith("-")]
        if not words or words[0] == "reset-failed":
            return SystemctlAnswer("")
        try:
            if words[0] == "daemon-reload":
                self._reload()
                return SystemctlAnswer("")
            if words[0] not in set(Verb) or len(words) < 2:
                return SystemctlAnswer(f"Unknown command verb {words[0]}.\n", 1)
            answer = self._of_timer if words[1].endswith(".timer") else self._of_service
            return await answer(Verb(words[0]), unit_name(words[1]), now="--now" in arguments)
        except GarboardError as error:
            return SystemctlAnswer(f"Failed to load the unit: {error.message}\n", 1)

    async def _of_service(self, verb: Verb, name: str, *, now: bool) -> SystemctlAnswer:
        unit = self._service(name)
        if unit is None or verb in QUESTIONS:
            return describe(name, verb, unit.state if unit else None)
        return await self._change(unit, verb, now=now)

    async def _of_timer(self, verb: Verb, name: str, *, now: bool) -> SystemctlAnswer:
        timer = self._timer(name)
        if timer is None:
            return describe(name, verb, None)
        if verb in QUESTIONS:
            remains = self._timers.is_active(timer.name)
            return describe(name, verb, UnitState(enabled=self._folders.is_enabled(name), remains=remains))
        if verb in SWITCHES:
            self._switch(name, verb, timer.wanted_by)
            if not now:
                return SystemctlAnswer("")
        if verb in ENDINGS:
            self._timers.stop(timer.name)
        if verb in BEGINNINGS:
            self._timers.start(timer)
        return SystemctlAnswer("")

    def _service(self, name: str) -> RunningUnit | None:
        """Return a service; one that is not known yet is read from its unit file."""
        if name not in self._units:
            text = self._folders.text(f"{name}.service")
            if text is None:
                return None
            unit = read_service(name, text)
            self._units[name] = RunningUnit(unit, UnitState(is_oneshot=unit.is_oneshot))
        found = self._units[name]
        if name not in UNITS:
            found.state = replace(found.state, enabled=self._folders.is_enabled(f"{name}.service"))
        return found

    def _timer(self, name: str) -> TimerUnit | None:
        text = self._folders.text(name)
        return None if text is None else read_timer(name.removesuffix(".timer"), text)

    def _reload(self) -> None:
        """Read the unit files again; what runs goes on, and what neither runs nor has a file any more is forgotten."""
        for name in self._units.keys() - UNITS.keys():
            with _logged(name):
                self._reload_service(name)
        for name in self._timers.names():
            with _logged(name):
                self._reload_timer(name)

    def _reload_service(self, name: str) -> None:
        running, text = self._units[name], self._folders.text(f"{name}.service")
        if text is not None:
            running.unit = read_service(name, text)
            running.state = replace(running.state, is_oneshot=running.unit.is_oneshot)
        elif not running.state.wanted:
            del self._units[name]

    def _reload_timer(self, name: str) -> None:
        timer = self._timer(f"{name}.timer")
        if timer is not None:
            self._timers.start(timer)

    def _switch(self, name: str, verb: Verb, wanted_by: Sequence[str]) -> None:
        if verb is Verb.ENABLE:
            self._folders.enable(name, wanted_by)
        else:
            self._folders.disable(name)

    async def _change(self, unit: RunningUnit, verb: Verb, *, now: bool) -> SystemctlAnswer:
        name = unit.unit.name
        if verb in SWITCHES:
            if name not in UNITS:
                self._switch(f"{name}.service", verb, unit.unit.wanted_by)
            unit.state = replace(unit.state, enabled=verb is Verb.ENABLE)
            if not now:
                return SystemctlAnswer("")
        if verb in ENDINGS:
            await self._stop(unit)
        if verb in BEGINNINGS and not unit.state.wanted:
            self.start(name)
            return await self._until_started(unit)
        return SystemctlAnswer("")

    async def _until_started(self, unit: RunningUnit) -> SystemctlAnswer:
        """Wait as systemd does: for a simple service until its program runs, for a oneshot one until that has ended."""
        while unit.state.wanted and not unit.has_ended and (unit.unit.is_oneshot or unit.state.pid is None):
            await asyncio.sleep(0.01)
        if unit.unit.is_oneshot and unit.state.has_failed:
            return SystemctlAnswer(f"Job for {unit.unit.name}.service failed: see its log in /var/log.\n", 1)
        return SystemctlAnswer("")

    def start(self, name: str) -> None:
        """Have a unit run from now on."""
        unit = self._units[name]
        unit.state = replace(unit.state, wanted=True, has_failed=False, remains=False)
        unit.has_ended = False
        unit.task = asyncio.get_running_loop().create_task(self._keep(unit))

    async def _keep(self, unit: RunningUnit) -> None:
        while unit.state.wanted:
            unit.nsenter = await self._services.start_service(
                self._enter(unit.unit.script), log=self._log(unit.unit.name)
            )
            unit.state = replace(unit.state, pid=await self._child(unit.nsenter))
            status = await unit.nsenter.wait()
            goes_on = unit.unit.is_started_again(status)
            unit.state = replace(
                unit.state,
                pid=None,
                wanted=goes_on,
                has_failed=status != 0,
                remains=unit.unit.remains and status == 0,
            )
            unit.has_ended = True
            if goes_on:
                await asyncio.sleep(unit.unit.restart_after_s)

    async def _child(self, nsenter: NodeService) -> int | None:
        """Return the child of nsenter, which forks to enter a process namespace; None if it ended at once."""
        ended = asyncio.ensure_future(nsenter.wait())
        try:
            while not ended.done():
                if pid := self._services.child_of(nsenter.pid):
                    return pid
                await asyncio.sleep(0.01)
        finally:
            ended.cancel()
        return None

    async def _stop(self, unit: RunningUnit) -> None:
        if unit.task:
            unit.task.cancel()
        state, unit.state = unit.state, replace(unit.state, wanted=False, pid=None, has_failed=False, remains=False)
        if state.pid is None or unit.nsenter is None:
            return
        self._services.send_signal(state.pid, signal.SIGTERM)
        try:
            async with asyncio.timeout(STOP_WITHIN_S):
                await unit.nsenter.wait()
        except TimeoutError:
            self._services.send_signal(state.pid, signal.SIGKILL)


@contextmanager
def _logged(name: str) -> Iterator[None]:
    """Leave out a unit whose file cannot be followed, and say so in the supervisor's log."""
    try:
        yield
    except GarboardError as error:
        sys.stderr.write(f"{name}: {error.message}\n")
