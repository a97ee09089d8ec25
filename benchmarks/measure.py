"""Running a command and measuring it: wall time of the whole process, and the most memory it ever held."""

import os
import platform
import statistics
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a command."""

    wall_s: float
    cpu_s: float
    peak_mib: float


def measure(command: Sequence[str | Path], *, output: Path, accepts: Sequence[int] = (0,)) -> Run:
    """Run `command` with its stdout in the file `output`; another status than those accepted ends the benchmark."""
    started = time.perf_counter()
    with output.open("wb") as out:
        process = subprocess.Popen([str(word) for word in command], stdout=out, stdin=subprocess.DEVNULL)
        # wait4 tells the memory of this very child; the totals of all children would hide a small one.
        _, status, usage = os.wait4(process.pid, 0)
    wall_s = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in accepts:
        raise SystemExit(f"{' '.join(map(str, command))} failed with status {process.returncode}")
    return Run(wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def machine() -> str:
    """Say what this was measured on: processors, memory, Python, and how busy others kept it."""
    return f"{hardware()}, load average {os.getloadavg()[1]:.1f}"


def hardware() -> str:
    """Say what this is measured on, whoever keeps it busy."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} processors, {memory:.0f} GiB of memory, Python {platform.python_version()}"
