"""Removing labs: a lab that runs, or whatever a crash left of one. What is alive and not meant is never touched."""

import os
import shutil
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from garboard.errors import GarboardError
from garboard.lab.labs import Labs
from garboard.lab.layout import images_folder
from garboard.lab.limits import Limits
from garboard.lab.record import ProcessId, Stage, myself

GONE_WITHIN_S = 15.0


def down(labs: Labs, name: str) -> None:
    """Remove a lab with everything it has in the kernel and on disk."""
    if name not in labs.records.names():
        labs.records.require(name)
    with labs.machine.locked(labs.home / ".lock"):
        record = labs.records.read(name)
        if record is not None:
            labs.records.update(record, stage=Stage.REMOVING, creator=myself())
        remove(labs, name)


def prune(labs: Labs) -> list[str]:
    """Remove every lab that nobody runs any more; return their names."""
    if not labs.home.is_dir():
        return []
    with labs.machine.locked(labs.home / ".lock"):
        dead = [name for name in labs.records.names() if (r := labs.records.read(name)) is None or r.is_left_over]
        for name in dead:
            remove(labs, name)
        _restore_limits(labs)
    return dead


def remove_images(labs: Labs) -> None:
    """Remove the imported images and the logs of labs that failed; nodes that run keep theirs by their hard links."""
    store = images_folder(labs.home)
    if store.is_dir():
        with labs.machine.locked(store / ".lock"):
            for folder in (each for each in store.iterdir() if each.is_dir()):
                shutil.rmtree(folder)
    shutil.rmtree(labs.home / "failed", ignore_errors=True)


def remove(labs: Labs, name: str) -> None:
    """Kill the supervisor, with which every process of the lab dies, then remove groups and files.

    The record goes last, so that an interrupted removal is found and finished by the next one.
    """
    record, files = labs.records.read(name), labs.files(name)
    if record and record.supervisor:
        _end(record.supervisor)
    _remove_groups(labs, name)
    shutil.rmtree(files.folder / "nodes", ignore_errors=True)
    shutil.rmtree(files.folder)
    _restore_limits(labs)


def _end(supervisor: ProcessId) -> None:
    deadline = time.monotonic() + GONE_WITHIN_S
    while supervisor.is_alive:
        os.kill(supervisor.pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise GarboardError(f"the supervisor (process {supervisor.pid}) cannot be killed")
        time.sleep(0.01)


def _remove_groups(labs: Labs, name: str) -> None:
    """Remove the lab's control groups once the last of its processes has gone, which takes the kernel a moment."""
    deadline = time.monotonic() + GONE_WITHIN_S
    while left := labs.groups(name).remove():
        if time.monotonic() > deadline:
            raise GarboardError(f"processes of lab {name} cannot be killed; see {left[0]}/cgroup.procs")
        _kill_members(left)
        time.sleep(0.02)


def _kill_members(groups: Sequence[Path]) -> None:
    """Kill what is still in these groups, all of them ours: a command run in a node, its supervisor gone before."""
    for group in groups:
        try:
            for pid in (group / "cgroup.procs").read_text().split():
                os.kill(int(pid), signal.SIGKILL)
        except (ProcessLookupError, FileNotFoundError):
            continue


def _restore_limits(labs: Labs) -> None:
    if not labs.records.names():
        Limits(labs.machine, labs.home).restore()
