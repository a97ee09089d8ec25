"""Long-running programs for an asyncio supervisor: started with a log file, awaited, signalled."""

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Service:
    """A program that runs; `pid` is that of the process we started, which may be a wrapper around the program."""

    process: Process

    @property
    def pid(self) -> int:
        return self.process.pid

    async def wait(self) -> int:
        """Return the status with which it ended."""
        return await self.process.wait()

    async def first_line(self, timeout_s: float) -> str:
        """Return the first line it writes to stdout; empty if it ends or stays silent."""
        assert self.process.stdout is not None, "started with a log file, not with a line to read"
        with contextlib.suppress(TimeoutError):
            return (
                (await asyncio.wait_for(self.process.stdout.readline(), timeout_s)).decode("utf-8", "replace").strip()
            )
        return ""

    def kill(self) -> None:
        """Kill it at once; nothing happens if it is known to have ended."""
        if self.process.returncode is None:
            send_signal(self.pid, signal.SIGKILL)


async def start_service(command: Sequence[str], *, log: Path, stdin: bytes | None = None) -> Service:
    """Start `command` with its output in `log`; with `stdin`, its stdout is kept for `first_line` instead."""
    with log.open("ab") as handle:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=PIPE if stdin is not None else DEVNULL,
            stdout=PIPE if stdin is not None else handle,
            stderr=handle if stdin is not None else STDOUT,
        )
    if stdin is not None:
        assert process.stdin is not None
        process.stdin.write(stdin)
        process.stdin.close()
    return Service(process)


async def start_child(command: Sequence[str], environment: Mapping[str, str], descriptors: Sequence[int]) -> Service:
    """Start `command` beside us: it writes where we write, and inherits these descriptors and no others."""
    return Service(
        await asyncio.create_subprocess_exec(
            *command, stdin=DEVNULL, env=dict(environment), pass_fds=tuple(descriptors), close_fds=True
        )
    )


async def run_briefly(command: Sequence[str], stdin: str = "") -> tuple[int, str]:
    """Run `command` to its end; return its status and all that it wrote."""
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=STDOUT)
    output, _ = await process.communicate(stdin.encode())
    return process.returncode or 0, output.decode("utf-8", "replace")


def child_of(pid: int) -> int | None:
    """Return the first child of the process `pid`, or None."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                # The name in parentheses may hold anything; the parent is the second field after it.
                if int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == pid:
                    return int(entry.name)
    return None


def send_signal(pid: int, number: int) -> bool:
    """Send a signal; False when the process has already gone."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True
