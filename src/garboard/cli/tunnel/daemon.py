"""What both tunnel programs have in common: Go's command line with klog's flags, logs, signals, memory."""

import asyncio
import contextlib
import ctypes
import gc
import logging
import os
import resource
import signal
import sys
import uuid
from collections.abc import Callable, Coroutine
from typing import Any, Final

import click

from garboard.cli.flags import NUMBER, ignored, stock, with_truths
from garboard.tunnel.background import beside
from garboard.tunnel.log_text import AUDIT, OneLineFormatter

KLOG: Final = (
    stock("v", NUMBER, "4", "How much to log: 0 is warnings and audit lines only, 5 and more is everything."),
    *(
        ignored(name, "logs go to stderr", is_switch=True)
        for name in (
            "logtostderr", "add-dir-header", "alsologtostderr", "one-output", "skip-headers", "skip-log-headers",
        )
    ),
    *(
        ignored(name, "logs go to stderr")
        for name in (
            "log-backtrace-at", "log-dir", "log-file", "log-file-max-size", "stderrthreshold", "vmodule",
            "legacy-stderr-threshold-behavior", "alsologtostderrthreshold",
        )
    ),
)  # fmt: skip
# Set for a worker by its supervisor: its number, the descriptor of its control socket, and who started it.
SEAT: Final = "GARBOARD_TUNNEL_WORKER"
_PR_SET_PDEATHSIG: Final = 1
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
MIB: Final = 1024 * 1024
KEPT_FREE: Final = 16 * MIB
GIVE_BACK_EVERY_S: Final = 10.0
MOST_DESCRIPTORS: Final = 1 << 20


class GoCommand(click.Command):
    """A command that takes its flags as the stock Konnectivity programs do."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, with_truths(self.params, map(_as_click_takes, args)))


def _as_click_takes(arg: str) -> str:
    """Return `--log_file=x` and `-v=4` as click wants them."""
    if arg.startswith("-v") and arg[2:3] in ("", "="):
        return f"--v{arg[2:]}"
    if not arg.startswith("--"):
        return arg
    name, equals, value = arg.partition("=")
    return f"{name.replace('_', '-')}{equals}{value}"


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


async def until_signalled(program: contextlib.AbstractAsyncContextManager[object], signals: Signals) -> int:
    """Run a program until a signal; a second one does not wait for what it has open. The exit status is returned."""

    async def run() -> None:
        async with program:
            await signals.first.wait()

    serving = asyncio.create_task(run())
    insisting = asyncio.create_task(signals.second.wait())
    await asyncio.wait((serving, insisting), return_when=asyncio.FIRST_COMPLETED)
    insisting.cancel()
    if serving.done():
        serving.result()
        return 0
    return 1


def run_daemon(
    main: Callable[[Signals], Coroutine[Any, Any, int]], *, verbosity: int, worker: int | None = None
) -> int:
    """Run until it ends by itself; its exit status is returned. The lines of a worker end with its number."""
    _write_logs(verbosity, "" if worker is None else f" worker={worker}")
    _raise_descriptor_limit()
    _collect_rarely()
    _keep_large_buffers()

    async def run() -> int:
        async with beside(_give_memory_back()):
            return await main(Signals())

    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(run())


def _write_logs(verbosity: int, ending: str = "") -> None:
    """Log to stderr, one line for each message that ends so; the audit lines whatever the verbosity."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(OneLineFormatter(f"%(asctime)s %(levelname).1s %(name)s %(message)s{ending}"))
    level = logging.DEBUG if verbosity >= 5 else logging.INFO if verbosity >= 1 else logging.WARNING
    logging.basicConfig(level=level, handlers=[handler])
    logging.getLogger(AUDIT).setLevel(logging.INFO)


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


async def _give_memory_back() -> None:
    """Return what bulk transfers and stalled readers have left, for ever."""
    while True:
        await asyncio.sleep(GIVE_BACK_EVERY_S)
        give_back_free_memory()


def give_back_free_memory() -> None:
    """Return free memory to the kernel, if the C library keeps more of it than the next transfers need."""
    with contextlib.suppress(OSError, AttributeError):  # another C library, or one before 2.33, does without
        libc = ctypes.CDLL(None)
        libc.mallinfo2.restype = _MallInfo
        if libc.mallinfo2().fordblks > KEPT_FREE:
            libc.malloc_trim(0)


class _MallInfo(ctypes.Structure):
    """What mallinfo2 tells; `fordblks` are the free bytes that the C library keeps."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks",
                     "keepcost")
    )  # fmt: skip


def _raise_descriptor_limit() -> None:
    """Take as many descriptors as the process may have: a shell and systemd give 1,024 for programs that use select."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MOST_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < most:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _collect_rarely() -> None:
    """Look for cycles less often, and never in what was imported: with many connections every look is a pause."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 50, 50)


def end_with(parent: int) -> None:
    """Have the kernel kill this process when the one that started it ends; at once, if it has ended already."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def new_id() -> str:
    return str(uuid.uuid4())
