"""A process that stands still, surely: SIGSTOP returns before the threads on other processors have stopped."""

import signal
import subprocess
import time
from pathlib import Path

_WITHIN_S = 10.0
_STOPPED = frozenset("Tt")


def freeze(process: "subprocess.Popen[bytes]") -> None:
    """Stop every thread of a process, and return when none of them runs."""
    process.send_signal(signal.SIGSTOP)
    give_up_at = time.monotonic() + _WITHIN_S
    while not states(process.pid) <= _STOPPED:
        assert time.monotonic() < give_up_at, f"process {process.pid} goes on in spite of SIGSTOP"
        time.sleep(0.001)


def thaw(process: "subprocess.Popen[bytes]") -> None:
    process.send_signal(signal.SIGCONT)


def states(pid: int) -> set[str]:
    """Return the states of the threads of a process, as the letters of proc(5)."""
    return {_state(path) for path in Path(f"/proc/{pid}/task").iterdir()}


def _state(task: Path) -> str:
    # The name of the program, in parentheses, may itself have any character.
    return (task / "stat").read_text().rpartition(")")[2].split()[0]
