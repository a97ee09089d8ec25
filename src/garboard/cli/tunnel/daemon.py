"""What both tunnel programs do as processes: logs, signals, memory."""

import asyncio
import contextlib
import ctypes
import gc
import logging
import os
import signal
import sys
import uuid
from collections.abc import Callable, Coroutine
from typing import Any, Final

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
MIB: Final = 1024 * 1024


class Signals:
    """SIGTERM and SIGINT: the first asks, the second insists."""

    def __init__(self) -> None:
        self.first = asyncio.Event()
        self.second = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_signal)

    def _on_signal(self) -> None:
        (self.second if self.first.is_set() else self.first).set()


def run_daemon(main: Callable[[Signals], Coroutine[Any, Any, int]], *, verbosity: int) -> int:
    """Run until it ends by itself; its exit status is returned."""
    level = logging.DEBUG if verbosity >= 5 else logging.INFO if verbosity >= 1 else logging.WARNING
    logging.basicConfig(level=level, stream=sys.stderr, format="%(asctime)s %(levelname).1s %(name)s %(message)s")
    _collect_rarely()
    _keep_large_buffers()

    async def run() -> int:
        return await main(Signals())

    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(run())


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The loop of uvloop where it is installed (`garboard[tunnel]`): it halves what a packet costs."""
    if os.environ.get("GARBOARD_EVENT_LOOP") == "asyncio":
        return None
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


def _keep_large_buffers() -> None:
    """Let glibc keep the buffers of bulk transfers instead of returning every one of them to the kernel at once."""
    with contextlib.suppress(OSError, AttributeError):  # another C library does without
        libc = ctypes.CDLL(None)
        libc.malloc_trim(0)  # of what the start left over
        libc.mallopt(_M_MMAP_THRESHOLD, 64 * MIB)
        libc.mallopt(_M_TRIM_THRESHOLD, 256 * MIB)


def _collect_rarely() -> None:
    """Look for cycles less often, and never in what was imported: with many connections every look is a pause."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 50, 50)


def new_id() -> str:
    return str(uuid.uuid4())
