"""Workers of a tunnel server in this event loop, where a supervisor expects processes."""

import asyncio
import contextlib
import itertools
import socket
from collections.abc import AsyncIterator
from dataclasses import replace

from garboard.tunnel.server.options import ServerOptions
from garboard.tunnel.server.run import ProxyServer
from garboard.tunnel.server.tenants import Tenant
from garboard.tunnel.workers.run import supervise
from garboard.tunnel.workers.supervisor import SupervisorTimes, WorkerSupervisor
from garboard.tunnel.workers.worker import Worker

KILLED = -9
QUICK = SupervisorTimes(
    restart_s=0.02, restart_cap_s=0.1, poll_s=0.05, answer_s=0.3, most_unanswered=2, start_s=5.0, stop_s=2.0
)


class LoopProcess:
    """A worker as a task (`WorkerProcess`)."""

    def __init__(self, pid: int, control: socket.socket, options: ServerOptions) -> None:
        self.pid = pid
        self._options = options
        self.worker = Worker(control, self._read_options, self.kill)
        self._task = asyncio.ensure_future(self.worker.run())

    @property
    def server(self) -> ProxyServer:
        assert self.worker._server is not None
        return self.worker._server

    async def wait(self) -> int:
        await asyncio.wait([self._task])
        if self._task.cancelled():
            return KILLED
        return 1 if self._task.exception() is not None else self._task.result()

    def kill(self) -> None:
        self._task.cancel()

    def hang(self) -> None:
        """PageAnswer nothing any more."""
        self.worker._control._loop.remove_reader(self.worker._control._socket.fileno())

    def _read_options(self, data: bytes | None) -> ServerOptions:
        if data is None:
            return self._options
        assert self._options.tenants_file is not None
        tenants: tuple[Tenant, ...] = self._options.tenants_file.parse(data)
        return replace(self._options, tenants=tenants, tenants_file=None)


class LoopWorkers:
    """Starts them (`StartWorker`); `options` are those of the server, as every worker reads them from its flags."""

    def __init__(self, options: ServerOptions) -> None:
        self.options = options
        self.by_number: dict[int, LoopProcess] = {}
        self._pids = itertools.count(1)
        self.is_broken = False

    async def __call__(self, number: int, control: socket.socket) -> LoopProcess:
        if self.is_broken:
            raise OSError(12, "Cannot allocate memory")
        process = self.by_number[number] = LoopProcess(next(self._pids), control.dup(), self.options)
        return process

    @property
    def servers(self) -> list[ProxyServer]:
        return [process.server for _, process in sorted(self.by_number.items())]


@contextlib.asynccontextmanager
async def supervised(
    options: ServerOptions, times: SupervisorTimes = QUICK
) -> AsyncIterator[tuple[WorkerSupervisor, LoopWorkers]]:
    """A server with its workers, all in this loop."""
    workers = LoopWorkers(options)
    async with supervise(options, workers, times) as supervisor:
        yield supervisor, workers
