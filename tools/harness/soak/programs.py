"""How the programs of a soak are run: each ends when whoever started it is gone."""

import asyncio
import contextlib
import os
import resource
import sys
from collections.abc import Coroutine
from typing import Any

import uvloop


def run_until_told(work: Coroutine[Any, Any, None]) -> None:
    """Run on uvloop until the work is done or standard input ends."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner, contextlib.suppress(asyncio.CancelledError):
        runner.run(_until_told(work))


async def _until_told(work: Coroutine[Any, Any, None]) -> None:
    running = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()

    def read_on() -> None:
        if not os.read(sys.stdin.fileno(), 4096):
            loop.remove_reader(sys.stdin.fileno())
            running.cancel()

    loop.add_reader(sys.stdin.fileno(), read_on)
    await running
