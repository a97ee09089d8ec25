"""The supervisor: starts the workers, replaces those that end or hang, and passes on what they need to know."""

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass

from garboard.errors import GarboardError, NotReady
from garboard.tunnel.log_text import quoted
from garboard.tunnel.server.clusters import refuse_shared_authorities
from garboard.tunnel.server.options import ServerOptions
from garboard.tunnel.server.run import FILES_EVERY_S
from garboard.tunnel.server.tenants import Tenant
from garboard.tunnel.tls import ListenerKeys, version_of
from garboard.tunnel.workers.child import Child, StartWorker, WorkerProcess
from garboard.tunnel.workers.control import Control, control_pair
from garboard.tunnel.workers.merging import Families, growing, merge_families
from garboard.tunnel.workers.messages import FILE_ENCODING, PROTOCOL, ControlMessage, Hello, Peers, Reload, Start, Stop
from garboard.tunnel.workers.sockets import FrontSockets, PortHold
from garboard.tunnel.workers.worker import worker_id

log = logging.getLogger("garboard.tunnel")


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisorTimes:
    """How long workers may take, and how soon they are replaced, in seconds."""

    restart_s: float = 0.5  # twice as long each time, if it does not stay
    restart_cap_s: float = 30.0
    steady_s: float = 60.0  # one that ran so long is replaced without delay
    poll_s: float = 5.0  # what it counted since then is lost when it is killed
    answer_s: float = 5.0
    most_unanswered: int = 5  # in a row: counted, since the supervisor itself may have been stopped for a while
    start_s: float = 60.0
    stop_s: float = 10.0  # beyond the time for open connections
    reload_s: float = 10.0
    tell_s: float = 0.02  # changes that come one after another are told together


class WorkerSupervisor:
    """A server with workers; make it with `supervise`."""

    def __init__(self, options: ServerOptions, start_worker: StartWorker, times: SupervisorTimes) -> None:
        self.options = options
        self._start_worker = start_worker
        self._times = times
        numbers = range(options.workers)
        self.children = [Child(each, worker_id(options.server_id, each), self._peers_changed) for each in numbers]
        self.fronts = FrontSockets()
        self._hold: PortHold | None = None
        self._file = options.tenants_file
        self._seen = version_of(self._file.path) if self._file else None
        data = self._file.read() if self._file else None
        self._tenants = self._file.parse(data) if self._file and data is not None else options.clusters()
        self._text = data.decode(FILE_ENCODING) if data is not None else None  # every worker reads its tenants from it
        self._reload_number = 0
        self.problem = ""  # why the file of tenants as it is now is not in use
        self._told = Peers(0, [], {})
        self._ready_since = 0  # by the number of what the workers were told
        self._telling: asyncio.TimerHandle | None = None
        self._stopping = asyncio.Event()
        self._ended = [asyncio.Event() for _ in numbers]
        self._begun: list[asyncio.Future[None]] = [asyncio.get_running_loop().create_future() for _ in numbers]
        self.has_started = False
        self.retired: Families = {}  # what workers that are gone had counted
        self.health_port = self.admin_port = 0

    @property
    def agent_port(self) -> int:
        return self._hold.port if self._hold is not None else 0

    @property
    def is_stopping(self) -> bool:
        return self._stopping.is_set()

    @property
    def running(self) -> list[Child]:
        """The workers that accept connections."""
        return [each for each in self.children if each.is_listening]

    @property
    def is_ready(self) -> bool:
        """Whether a worker has an agent, and the others know that they leave clients to it."""
        is_known = all(each.peers_heard >= self._ready_since for each in self.running)
        return bool(_with_agents(self._told.most_agents)) and is_known

    @property
    def restarts(self) -> int:
        return sum(max(each.starts - 1, 0) for each in self.children)

    async def open(self) -> None:
        """Take the sockets, and refuse what no worker could serve. Raises `NotReady`."""
        self._check_keys(self._tenants)
        self._hold = await PortHold.take(self.options.agent_bind_address, self.options.agent_port)
        await self.fronts.open([each.frontend for each in self._tenants])

    async def wait_until_started(self) -> None:
        """Until every worker accepts connections. Raises `NotReady` if one cannot."""
        await asyncio.gather(*self._begun)
        self.has_started = True
        front = ",".join(self.fronts.by_place)
        log.info("server.listening agents=%d front=%s workers=%d", self.agent_port, front, len(self.children))

    async def stop(self) -> None:
        """Have every worker end as the options say, and wait for it."""
        self._stopping.set()
        for child in self.children:
            if child.control is not None:
                child.control.send(Stop())
        self.fronts.close(removes=False)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.options.graceful_shutdown_s + self._times.stop_s):
                for ended in self._ended:
                    await ended.wait()
        if self.has_started:
            log.info("server.stopped cut_connections=%d", sum(each.cut_connections for each in self.children))

    def close(self) -> None:
        """Let go of the sockets."""
        self.fronts.close(removes=False)
        if self._hold is not None:
            self._hold.close()

    # Workers.

    async def keep(self, child: Child) -> None:
        """Run the worker, and another one in its place when it ends, until the server stops."""
        pause_s = self._times.restart_s
        while not self.is_stopping:
            began = time.monotonic()
            ended = await self._run(child)
            if self.is_stopping or self._begun[child.number].exception() is not None:
                break
            if time.monotonic() - began >= self._times.steady_s:
                pause_s = self._times.restart_s
            log.error("worker.ended worker=%d reason=%s restart_after_s=%.1f", child.number, quoted(ended), pause_s)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._stopping.wait()
            pause_s = min(2 * pause_s, self._times.restart_cap_s)
        self._ended[child.number].set()

    async def _run(self, child: Child) -> str:
        """Run one process to its end, and say how it ended."""
        child.forget()
        child.starts += 1
        failure: NotReady | None = None
        try:
            process = child.process = await self._start(child)
            status = await process.wait()
            failure = child.last_words()
            ended = failure.message if failure else f"status {status}" if status >= 0 else f"signal {-status}"
        except OSError as error:
            ended = f"cannot be started: {error.strerror}"
        finally:
            await self._end(child)
        if not self._begun[child.number].done():
            self._begun[child.number].set_exception(failure or _not_begun(child, ended))
        return ended

    async def _start(self, child: Child) -> WorkerProcess:
        ours, theirs = control_pair()
        try:
            with theirs:
                process = await self._start_worker(child.number, theirs)
        except BaseException:
            ours.close()
            raise
        child.control = Control(ours, lambda message, _sockets: self._take(child, message), process.kill)
        return process

    async def _end(self, child: Child) -> None:
        """See that nothing is left of a process, and keep what it had counted."""
        if child.process is not None:
            child.process.kill()
            await child.process.wait()
            child.process = None
        self.retired = merge_families([self.retired, growing(child.metrics)])
        child.metrics = {}
        child.close()

    def _take(self, child: Child, message: ControlMessage) -> None:
        if isinstance(message, Hello):
            self._begin(child, message)
        else:
            child.take(message)
        if child.is_listening and not self._begun[child.number].done():
            self._begun[child.number].set_result(None)

    def _begin(self, child: Child, hello: Hello) -> None:
        assert child.control is not None
        if hello.protocol != PROTOCOL:
            child.refuse("the program on disk is another version than the one that runs", hint="restart the server")
            return
        if self.is_stopping:
            child.refuse("the server is stopping")
            return
        places, sockets = self._sockets_of(list(self.fronts.by_place))
        most, server_id = self._told.most_agents, self.options.server_id
        try:
            child.control.send(Start(server_id, child.number, self.agent_port, self._text, places, most), sockets)
        except OSError as error:
            child.refuse(f"its sockets cannot be passed on: {error.strerror}", hint="see the limit of open files")
            return
        child.is_begun = True
        child.peers_heard = self._told.number

    def _sockets_of(self, places: list[str]) -> tuple[list[str], list[socket.socket]]:
        pairs = [(place, each) for place in places for each in self.fronts.by_place[place]]
        return [place for place, _ in pairs], [each for _, each in pairs]

    async def watch(self, child: Child) -> None:
        """Ask a worker for what it has counted, and end it if it does not answer, for ever."""
        while True:
            await asyncio.sleep(self._times.poll_s)
            if child.is_listening:
                await child.count(self._times.answer_s)
            elif child.process is not None and time.monotonic() - child.began_at > self._times.start_s:
                self._end_hanging(child, "it has not begun in time")
            if child.unanswered >= self._times.most_unanswered:
                self._end_hanging(child, "it does not answer")

    def _end_hanging(self, child: Child, reason: str) -> None:
        if child.process is not None and not self.is_stopping:
            log.error("worker.hangs worker=%d pid=%d reason=%s", child.number, child.process.pid, quoted(reason))
            child.process.kill()

    def _peers_changed(self) -> None:
        """Tell the workers: soon, or at once if another tenant has agents than before."""
        if _with_agents(self._most_agents()) != _with_agents(self._told.most_agents):
            self._tell_peers()
        elif self._telling is None:
            self._telling = asyncio.get_running_loop().call_later(self._times.tell_s, self._tell_peers)

    def _most_agents(self) -> dict[str, int]:
        most: dict[str, int] = {}
        for child in self.running:
            for tenant, agents in child.agents.items():
                most[tenant] = max(most.get(tenant, 0), agents)
        return most

    def _tell_peers(self) -> None:
        if self._telling is not None:
            self._telling.cancel()
            self._telling = None
        before = self._told
        peers = self._told = Peers(before.number + 1, [each.server_id for each in self.running], self._most_agents())
        if not _with_agents(before.most_agents):
            self._ready_since = peers.number
        for child in self.children:
            if child.control is not None and child.is_begun:
                child.control.send(peers)

    # Tenants.

    async def keep_file(self) -> None:
        """Look whether the file of tenants has changed, for ever."""
        while True:
            await asyncio.sleep(FILES_EVERY_S)
            await self.refresh_tenants()

    async def refresh_tenants(self) -> None:
        """Have every worker serve the tenants of the file as it is now; one that cannot be used changes nothing."""
        if self._file is None:
            return
        found = version_of(self._file.path)
        if found == self._seen and not self.problem:
            return
        self._seen = found
        before = self.problem
        try:
            self.problem = await self._use_tenants(self._file.read())
        except GarboardError as error:
            self.problem = error.message
        except OSError as error:
            self.problem = f"sockets cannot be passed on: {error.strerror}"
        if self.problem and self.problem != before:
            log.error("tenants.not-reloaded file=%s reason=%s", self._file.path, quoted(self.problem))
        elif not self.problem:
            log.info("tenants.reloaded file=%s tenants=%d", self._file.path, len(self._tenants))

    async def _use_tenants(self, data: bytes) -> str:
        assert self._file is not None
        tenants = self._file.parse(data)
        self._check_keys(tenants)
        frontends = [each.frontend for each in tenants]
        opened = await self.fronts.open(frontends)
        self._tenants, self._text = tenants, data.decode(FILE_ENCODING)
        self._reload_number += 1
        answers = [self._send_tenants(each, opened) for each in self.children if each.is_begun]
        done, late = await asyncio.wait(answers, timeout=self._times.reload_s) if answers else (set(), set())
        self.fronts.keep_only(frontends)
        # One that has ended meanwhile begins anew with these tenants.
        problems = [each.result() for each in done if not each.cancelled() and each.result()]
        return next(iter(problems), "a worker has not taken it over yet" if late else "")

    def _send_tenants(self, child: Child, opened: list[str]) -> "asyncio.Future[str]":
        assert child.control is not None
        assert self._text is not None
        places, sockets = self._sockets_of(opened)
        child.control.send(Reload(self._reload_number, self._text, places), sockets)
        return child.reload_answer(self._reload_number)

    def _check_keys(self, tenants: tuple[Tenant, ...]) -> None:
        """Read every certificate once, as the workers will. Raises `NotReady`."""
        refuse_shared_authorities([(each, ListenerKeys(each.keys, self.options.tls)) for each in tenants])
        for each in tenants:
            if each.frontend.keys is not None:
                ListenerKeys(each.frontend.keys, self.options.tls)


def _with_agents(most_agents: Mapping[str, int]) -> set[str]:
    return {tenant for tenant, agents in most_agents.items() if agents}


def _not_begun(child: Child, ended: str) -> NotReady:
    return NotReady(
        f"worker {child.number} ended before it had begun: {ended}", hint="the lines above say why, if it could tell"
    )
