"""`garboard tunnel server --workers`: the supervisor, and the workers, which are the same command once more."""

import os
import socket
import sys

from garboard.cli.tunnel.daemon import SEAT, Signals, end_with, run_daemon, until_signalled
from garboard.errors import BadUsage
from garboard.host.services import Service, start_child
from garboard.tunnel.server.options import ServerOptions
from garboard.tunnel.workers.run import supervise
from garboard.tunnel.workers.worker import ReadOptions, Worker


def run_supervisor(options: ServerOptions, *, verbosity: int) -> int:
    """Until a signal; a second one does not wait for open connections."""

    async def run(signals: Signals) -> int:
        return await until_signalled(supervise(options, start_worker), signals)

    return run_daemon(run, verbosity=verbosity)


async def start_worker(number: int, control: socket.socket) -> Service:
    """This command again, with the flags that it was given."""
    command = [sys.executable, *sys.orig_argv[1:]]
    environment = {**os.environ, SEAT: f"{number}:{control.fileno()}:{os.getpid()}"}
    return await start_child(command, environment, [control.fileno()])


def run_worker(seat: str, read_options: ReadOptions, *, verbosity: int) -> int:
    """Serve as the supervisor says; signals are for the supervisor alone."""
    number, control, parent = _read_seat(seat)
    end_with(parent)

    async def run(_signals: Signals) -> int:
        return await Worker(control, read_options, lambda: os._exit(1)).run()

    return run_daemon(run, verbosity=verbosity, worker=number)


def _read_seat(text: str) -> tuple[int, socket.socket, int]:
    try:
        number, descriptor, parent = (int(each) for each in text.split(":"))
        return number, socket.socket(fileno=descriptor), parent
    except (ValueError, OSError):
        raise BadUsage(
            f"{SEAT}={text} is not what a supervisor gives to a worker", hint=f"unset {SEAT}: it is not for users"
        ) from None
