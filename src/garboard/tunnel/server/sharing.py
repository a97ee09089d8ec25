"""A server that is one of several workers: what its supervisor gives it, and how it accepts from shared sockets."""

import asyncio
import logging
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from garboard.tunnel.log_text import quoted
from garboard.tunnel.server.accepting import SHARED_ACCEPTS
from garboard.tunnel.server.agent_stream import ServerIdentity
from garboard.tunnel.server.tenants import FrontendConfig

PAUSE_S: Final = 1.0

log = logging.getLogger("garboard.tunnel")


@dataclass(slots=True)
class Sharing:
    """What a worker shares with the others: the sockets for API servers, and how many agents the others have."""

    identity: ServerIdentity
    fronts: dict[str, list[socket.socket]] = field(default_factory=dict)  # sockets that listen, by their place
    most_agents: dict[str, int] = field(default_factory=dict)  # by tenant, of the worker that has most
    on_agents: Callable[[], None] = lambda: None  # called when an agent has come or gone

    def front(self, frontend: FrontendConfig) -> list[socket.socket]:
        return self.fronts[frontend.place]

    def close_fronts(self, kept: Iterable[str] = ()) -> None:
        """Let go of all sockets but those at these places: who connects there is refused, once every worker has."""
        for place in self.fronts.keys() - set(kept):
            for each in self.fronts.pop(place):
                each.close()

    def takes_clients(self, tenant: str, agents: int) -> bool:
        """Whether a worker with so many agents of a tenant accepts its API servers.

        One without agents does not, unless nobody has any: then the client is told so. Nor does one that has only just
        begun: most agents are still on their way to it.
        """
        return 2 * agents >= self.most_agents.get(tenant, 0)


class SharedListener:
    """Accepts from unix sockets that other workers accept from too."""

    def __init__(self, accept: Callable[[], asyncio.BaseProtocol], sockets: Iterable[socket.socket]) -> None:
        self._accept = accept
        self._loop = asyncio.get_running_loop()
        self._sockets = [each.dup() for each in sockets]
        self._begun: set[asyncio.Task[object]] = set()
        self._resuming: asyncio.TimerHandle | None = None
        self.set_open(True)

    def set_open(self, is_open: bool) -> None:
        """Whether to accept, or to leave what comes to other workers."""
        if self._resuming is not None:
            self._resuming.cancel()
            self._resuming = None
        for each in self._sockets:
            if is_open:
                self._loop.add_reader(each.fileno(), self._on_readable, each)
            else:
                self._loop.remove_reader(each.fileno())

    def close(self) -> None:
        self.set_open(False)
        for each in self._sockets:
            each.close()
        self._sockets.clear()

    def _on_readable(self, listener: socket.socket) -> None:
        for _ in range(SHARED_ACCEPTS):
            try:
                peer, _ = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return  # another worker was faster
            except OSError as error:
                log.warning("accept.paused front=%s reason=%s", listener.getsockname(), quoted(str(error.strerror)))
                self.set_open(False)
                self._resuming = self._loop.call_later(PAUSE_S, self.set_open, True)
                return
            peer.setblocking(False)
            task = self._loop.create_task(self._loop.connect_accepted_socket(self._accept, peer))
            self._begun.add(task)
            task.add_done_callback(self._begun.discard)
