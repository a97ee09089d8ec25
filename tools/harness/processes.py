"""What the kernel tells of running processes: their children, processor time, memory and descriptors."""

import contextlib
import os
import signal
import subprocess
from pathlib import Path
from typing import Final

TICKS: Final = os.sysconf("SC_CLK_TCK")
_PARENT, _USER, _SYSTEM = 1, 11, 12  # fields of /proc/PID/stat, counted behind the name


def children_of(pid: int) -> list[int]:
    """Return the processes that this one has started and that live."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            fields = _stat(int(folder.name))
            if fields and int(fields[_PARENT]) == pid and fields[0] != "Z":
                found.append(int(folder.name))
    return sorted(found)


def end_with_children(process: "subprocess.Popen[bytes]") -> None:
    """Kill a program and what it has started, by their ids: killed itself, it cannot end them."""
    children = children_of(process.pid)
    process.kill()
    process.wait()
    for pid in children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def cpu_s(pid: int) -> float:
    """Return the processor time that a process has used; 0 for one that is gone."""
    fields = _stat(pid)
    return (int(fields[_USER]) + int(fields[_SYSTEM])) / TICKS if fields else 0.0


def resident_bytes(pid: int) -> int:
    return _status(pid, "VmRSS")


def peak_bytes(pid: int) -> int:
    """Return the most memory that it has held, or since `reset_peak`."""
    return _status(pid, "VmHWM")


def reset_peak(pid: int) -> None:
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def descriptors_of(pid: int) -> int:
    """Return how many descriptors are open; 0 for a process that is gone."""
    try:
        return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return 0


def _stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return []


def _status(pid: int, name: str) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:")), 0)
