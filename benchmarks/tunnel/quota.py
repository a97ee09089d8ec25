"""Processes held to a share of one core, so that few cores show what more of them would do.

Where the cpu controller of cgroups can be written (version 1 or 2, as root), the kernel does it. Elsewhere a thread
stops a process (SIGSTOP) whenever it has used more than its share, and lets it go on (SIGCONT) when the share has
caught up; that is coarser, but measures the same.
"""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

PERIOD_US: Final = 10_000
LEAST_US: Final = 1_000  # of a period, which the kernel takes as a quota
LOOK_EVERY_S: Final = 0.002
_CPU_V1: Final = Path("/sys/fs/cgroup/cpu")
_V2: Final = Path("/sys/fs/cgroup")


@contextlib.contextmanager
def held_to(share: float, pids: Sequence[int]) -> Iterator[str]:
    """Hold each of the processes to this share of a core while the context is open; how is yielded."""
    with contextlib.ExitStack() as stack:
        try:
            for pid in pids:
                stack.enter_context(_cgroup(share, pid))
        except OSError:
            stack.close()
            for pid in pids:
                stack.enter_context(_stopped_and_continued(share, pid))
            yield "SIGSTOP and SIGCONT"
        else:
            yield "cgroups"


@contextlib.contextmanager
def _cgroup(share: float, pid: int) -> Iterator[None]:
    """A group of its own for the process; it goes back to where it was. Raises `OSError` where that is not allowed."""
    is_v1 = (_CPU_V1 / "cpu.cfs_quota_us").exists() or (_CPU_V1 / "cgroup.procs").exists()
    root = _CPU_V1 if is_v1 else _V2
    home = _home_of(pid, root, is_v1=is_v1)
    group = root / f"garboard-benchmark-{pid}"
    group.mkdir()
    try:
        period = max(PERIOD_US, round(LEAST_US / share))
        quota = round(period * share)
        if is_v1:
            (group / "cpu.cfs_period_us").write_text(str(period))
            (group / "cpu.cfs_quota_us").write_text(str(quota))
        else:
            (root / "cgroup.subtree_control").write_text("+cpu")
            (group / "cpu.max").write_text(f"{quota} {period}")
        (group / "cgroup.procs").write_text(str(pid))
        yield
    finally:
        with contextlib.suppress(OSError):  # the process is gone
            (home / "cgroup.procs").write_text(str(pid))
        _remove(group)


def _home_of(pid: int, root: Path, *, is_v1: bool) -> Path:
    """The group that the process is in."""
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        number, controllers, path = line.split(":", 2)
        if ("cpu" in controllers.split(",")) if is_v1 else number == "0":
            return root / path.lstrip("/")
    return root


def _remove(group: Path) -> None:
    """A group with a process in it that is about to end cannot be removed at once."""
    for _ in range(50):
        try:
            group.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.02)
        else:
            return


@contextlib.contextmanager
def _stopped_and_continued(share: float, pid: int) -> Iterator[None]:
    is_over = threading.Event()
    keeper = threading.Thread(target=_keep_to_share, args=(share, pid, is_over), daemon=True)
    keeper.start()
    try:
        yield
    finally:
        is_over.set()
        keeper.join()


def _keep_to_share(share: float, pid: int, is_over: threading.Event) -> None:
    with contextlib.suppress(OSError):  # the process is gone
        clock = (~pid << 3) | 2  # the processor time of another process, as clock_getcpuclockid(3) names it
        used_before, began = time.clock_gettime(clock), time.monotonic()
        while not is_over.wait(LOOK_EVERY_S):
            has_too_much = time.clock_gettime(clock) - used_before > (time.monotonic() - began) * share
            os.kill(pid, signal.SIGSTOP if has_too_much else signal.SIGCONT)
        os.kill(pid, signal.SIGCONT)
