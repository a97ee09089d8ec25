"""A worker: a proxy server that is told by its supervisor who it is, what it serves and when it ends."""

import asyncio
import logging
import socket
from collections.abc import Callable, Coroutine
from dataclasses import replace
from http import HTTPStatus
from typing import Any, Final

from garboard.errors import GarboardError
from garboard.tunnel.background import beside
from garboard.tunnel.server.agent_stream import ServerIdentity
from garboard.tunnel.server.options import ServerOptions
from garboard.tunnel.server.run import ProxyServer, run_server
from garboard.tunnel.server.shares import share_of
from garboard.tunnel.server.sharing import Sharing
from garboard.tunnel.web import Page
from garboard.tunnel.workers.control import Control
from garboard.tunnel.workers.messages import (
    FILE_ENCODING,
    Agents,
    Ask,
    ControlMessage,
    Failed,
    Hello,
    Listening,
    PageAnswer,
    Peers,
    PeersHeard,
    Reload,
    Reloaded,
    Start,
    Stop,
    Stopped,
)

REPORT_S: Final = 0.05  # agents that come one after another are told of together

log = logging.getLogger("garboard.tunnel")

ReadOptions = Callable[[bytes | None], ServerOptions]  # from the flags, with this file of tenants


def worker_id(server: str, number: int) -> str:
    """What a worker calls itself to agents and in its lease."""
    return f"{server}-{number}"


class Worker:
    """`run` serves until the supervisor says that it is over; `on_orphaned` is called if the supervisor is gone."""

    def __init__(
        self,
        control: socket.socket,
        read_options: ReadOptions,
        on_orphaned: Callable[[], None],
    ) -> None:
        self._read_options = read_options
        self._control = Control(control, self._take, on_orphaned)
        self._start: asyncio.Future[tuple[Start, list[socket.socket]]] = asyncio.get_running_loop().create_future()
        self._reloads: asyncio.Queue[tuple[Reload, list[socket.socket]]] = asyncio.Queue()
        self._peers: Peers | None = None
        self._is_over = asyncio.Event()
        self._server: ProxyServer | None = None
        self._sharing: Sharing | None = None
        self._reporting: asyncio.TimerHandle | None = None
        self._reported: dict[str, int] = {}
        self._answering: set[asyncio.Task[None]] = set()

    async def run(self) -> int:
        self._control.send(Hello())
        try:
            start, sockets = await self._start
            return await self._serve(start, sockets)
        except GarboardError as error:
            self._control.send(Failed(error.message, error.hint or "", error.error_class))
            return error.exit_code
        finally:
            self._control.close()

    async def _serve(self, start: Start, sockets: list[socket.socket]) -> int:
        options = _own_options(self._read_options(_file(start.tenants)), start)
        identity = ServerIdentity(options.server_id, options.server_count, server=start.server, workers=options.workers)
        fronts = _by_place(start.fronts, sockets)
        self._sharing = Sharing(identity, fronts, start.most_agents, on_agents=self._agents_changed)
        self._server = server = ProxyServer(options, self._sharing)
        async with run_server(server), beside(self._reload()):
            self._use_peers()
            self._control.send(Listening())
            await self._is_over.wait()
        self._control.send(Stopped(server.cut_connections))
        return 0

    # What the supervisor says.

    def _take(self, message: ControlMessage, sockets: list[socket.socket]) -> None:
        match message:
            case Start():
                self._start.set_result((message, sockets))
            case Reload():
                self._reloads.put_nowait((message, sockets))
            case Peers():
                self._peers = message
                self._use_peers()
                self._control.send(PeersHeard(message.number))
            case Ask():
                self._in_background(self._answer(message))
            case Stop():
                self._is_over.set()
            case _:
                log.warning("control.unexpected message=%s", type(message).__name__)

    def _use_peers(self) -> None:
        if self._sharing is None or self._server is None or self._peers is None or self._is_over.is_set():
            return
        self._sharing.identity.present = tuple(self._peers.present)
        self._sharing.most_agents = self._peers.most_agents
        for cluster in self._server.clusters:
            cluster.choose_clients()

    async def _reload(self) -> None:
        """Serve the tenants that the supervisor has read, each time that it has, for ever."""
        assert self._server is not None
        assert self._sharing is not None
        while True:
            message, sockets = await self._reloads.get()
            self._sharing.fronts |= _by_place(message.fronts, sockets)
            problem = ""
            try:
                await self._server.use_tenants(self._read_options(_file(message.tenants)).tenants)
            except GarboardError as error:
                problem = error.message
            else:
                self._sharing.close_fronts({each.tenant.frontend.place for each in self._server.clusters})
            self._control.send(Reloaded(message.number, problem))
            self._agents_changed()

    # What it says to the supervisor.

    def _agents_changed(self) -> None:
        assert self._server is not None
        if any(bool(each.agents) != bool(self._reported.get(each.tenant.name)) for each in self._server.clusters):
            self._report()  # the first of a tenant, or none any more: whom clients go to depends on it
        elif self._reporting is None:
            self._reporting = asyncio.get_running_loop().call_later(REPORT_S, self._report)

    def _report(self) -> None:
        assert self._server is not None
        if self._reporting is not None:
            self._reporting.cancel()
            self._reporting = None
        counts = {each.tenant.name: each.agents for each in self._server.clusters}
        if counts != self._reported:
            self._reported = counts
            self._control.send(Agents(counts))

    async def _answer(self, ask: Ask) -> None:
        page = await self._page(ask)
        self._control.send(PageAnswer(ask.number, page.status.value, page.text))

    async def _page(self, ask: Ask) -> Page:
        if self._server is None:
            return Page(HTTPStatus.SERVICE_UNAVAILABLE, "the worker has not begun")
        question, page = self._server.questions().get(ask.path), self._server.admin_pages().get(ask.path)
        if question is not None:
            return await question(ask.query)
        return page(False) if page is not None else Page(HTTPStatus.NOT_FOUND, "")

    def _in_background(self, job: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(job)
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)


def _own_options(options: ServerOptions, start: Start) -> ServerOptions:
    """Those of the server, for one of its workers: with an id of its own, and its share of what may wait."""
    workers, policy = options.workers, options.stall_policy
    return replace(
        options,
        server_id=worker_id(start.server, start.number),
        server_count=options.server_count * workers,
        agent_port=start.agent_port,
        stall_policy=replace(policy, most_bytes=share_of(policy.most_bytes, workers)),
    )


def _file(text: str | None) -> bytes | None:
    return text.encode(FILE_ENCODING) if text is not None else None


def _by_place(places: list[str], sockets: list[socket.socket]) -> dict[str, list[socket.socket]]:
    found: dict[str, list[socket.socket]] = {}
    for place, each in zip(places, sockets, strict=True):
        found.setdefault(place, []).append(each)
    return found
