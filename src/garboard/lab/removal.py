"""Removing labs: one that runs, or what a crash left of one. A lab that runs and was not named is never touched."""

import contextlib
import os
import signal
from collections.abc import Callable
from pathlib import Path

from garboard.errors import GarboardError
from garboard.lab.labs import Labs
from garboard.lab.preflight import InotifyLimit
from garboard.lab.record import ProcessId, Stage
from garboard.retry import Pauses, wait_until

GONE_WITHIN_S = 15.0
POLL_EVERY_S = 0.01


def down(labs: Labs, name: str) -> None:
    """Remove a lab with everything it has in the kernel and on disk."""
    if name not in labs.records.names():
        labs.records.require(name)
    with labs.machine.locked(labs.home / ".lock"):
        record = labs.records.read(name)
        if record is not None:
            labs.records.update(record, stage=Stage.REMOVING, creator=labs.records.processes.myself())
        remove(labs, name)


def remove(labs: Labs, name: str) -> None:
    """Kill the supervisor, with which every process of the lab dies, then remove groups and files.

    The record goes last, so that an interrupted removal is found and finished by the next one.
    """
    record, files = labs.records.read(name), labs.files(name)
    if record and record.supervisor:
        _end(labs, record.supervisor)
    _remove_groups(labs, name)
    _remove_files(labs, files.folder)
    restore_limits(labs)


def _remove_files(labs: Labs, folder: Path) -> None:
    """Remove the files of a lab, also while a copy that a killed `lab up` had begun still runs: it ends by itself."""

    def what_is_left() -> str | None:
        labs.machine.remove_tree(folder / "nodes", ignore_errors=True)
        return f"{folder / 'nodes'} cannot be removed" if (folder / "nodes").exists() else None

    _wait_for(what_is_left)
    labs.machine.remove_tree(folder)


def _end(labs: Labs, supervisor: ProcessId) -> None:
    def why_alive() -> str | None:
        if not labs.records.processes.is_alive(supervisor):
            return None
        _kill(supervisor.pid)
        return f"the supervisor (process {supervisor.pid}) cannot be killed"

    _wait_for(why_alive)


def _remove_groups(labs: Labs, name: str) -> None:
    """Remove the lab's control groups once the last of its processes has gone, which takes the kernel a moment.

    What is still in these groups is killed: a command that was run in a node, whose supervisor was gone before.
    """
    groups = labs.groups(name)

    def what_is_left() -> str | None:
        left = groups.remove()
        for pid in (pid for group in left for pid in groups.members(group)):
            _kill(pid)
        return f"processes of lab {name} cannot be killed; see {left[0]}/cgroup.procs" if left else None

    _wait_for(what_is_left)


def _wait_for(probe: Callable[[], str | None]) -> None:
    """Wait for what the kernel does in a moment; if it does not, raise with what is in the way."""
    problem = wait_until(probe, timeout_s=GONE_WITHIN_S, pauses=Pauses.every(POLL_EVERY_S))
    if problem is not None:
        raise GarboardError(problem)


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def restore_limits(labs: Labs) -> None:
    """Put back what labs have raised, once there is none any more."""
    if not labs.records.names():
        InotifyLimit(labs.machine, labs.home).restore()
