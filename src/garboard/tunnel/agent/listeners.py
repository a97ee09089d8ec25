"""The node's side of the direction to the control plane: a port for every target, and the clients that come to it."""

import asyncio
import contextlib
import logging
import os
import socket
import struct
from typing import Final

from garboard.tunnel.agent.servers import Servers
from garboard.tunnel.destinations import Target
from garboard.tunnel.entry import Entry
from garboard.tunnel.flow import StallWatch
from garboard.tunnel.fronts import FrontSocket
from garboard.tunnel.metrics import Counter
from garboard.tunnel.sockets import BACKLOG, keep_alive
from garboard.tunnel.switchboard import Times

# A server bounds its own dial by five seconds; this is for one that is silent.
DIAL_TIMEOUT_S: Final = 10.0
BIND_AGAIN_S: Final = 1.0
_RESET: Final = struct.pack("ii", 1, 0)  # SO_LINGER: the peer sees a reset, not an end

log = logging.getLogger("garboard.tunnel")


class LocalClient(FrontSocket):
    """A connection of the node; one that cannot be carried is reset, as by a destination that is not there."""

    def __init__(self, ports: "TargetPorts", target: Target) -> None:
        super().__init__(ports.entry)
        self._ports = ports
        self._target = target

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._ports.clients += 1
        self.entry.dial_to(self.tunnel, str(self._target.destination))

    def connection_lost(self, exc: Exception | None) -> None:
        self._ports.clients -= 1
        super().connection_lost(exc)

    def accepted(self) -> None:
        self._ports.dials.of(str(self._target.destination), "accepted").value += 1

    def refused(self, error: str) -> None:
        self._ports.dials.of(str(self._target.destination), "refused").value += 1
        log.warning("target.dial.failed target=%s error=%s", self._target, error)
        if self.transport is not None:
            peer: socket.socket | None = self.transport.get_extra_info("socket")
            if peer is not None:
                with contextlib.suppress(OSError):
                    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.cut()


class TargetPorts:
    """Listens for every target, as soon as the address to listen on is there."""

    def __init__(self, bind_address: str, targets: tuple[Target, ...], watch: StallWatch) -> None:
        self._bind_address = bind_address
        self.targets = targets
        self.servers = Servers()
        self.entry = Entry(self.servers, times=Times(dial_s=DIAL_TIMEOUT_S), watch=watch)
        self.dials = Counter("target", "outcome")
        self.clients = 0
        self._listening: dict[Target, asyncio.Server] = {}
        self._reasons: dict[Target, str] = {}

    async def run(self) -> None:
        """Listen, and try again where that fails: the address may be set up after us. For ever."""
        while True:
            for target in self.targets:
                if target not in self._listening:
                    await self._listen(target)
            await asyncio.sleep(BIND_AGAIN_S)

    def failures(self) -> dict[Target, str]:
        """Why a target cannot be reached through us now."""
        found: dict[Target, str] = {}
        for target in self.targets:
            destination = str(target.destination)
            if target not in self._listening:
                found[target] = self._reasons.get(target, "not listening yet")
            elif not self.servers.backends:
                found[target] = "no connected server takes connections of nodes"
            elif not self.servers.that_allow(destination):
                names = ", ".join(backend.server_id for backend in self.servers.backends)
                found[target] = f"not an allowed destination of {names}"
        return found

    def allowing_servers(self) -> dict[str, float]:
        """How many servers allow each target."""
        return {str(target): len(self.servers.that_allow(str(target.destination))) for target in self.targets}

    def close(self) -> None:
        for server in self._listening.values():
            server.close()
        for front in list(self.entry.fronts.values()):
            front.disconnect()

    async def _listen(self, target: Target) -> None:
        loop = asyncio.get_running_loop()
        try:
            server = await loop.create_server(
                lambda: LocalClient(self, target), self._bind_address, target.local_port, backlog=BACKLOG
            )
        except OSError as error:
            reason = f"cannot listen: {os.strerror(error.errno) if error.errno else error}"
            if self._reasons.get(target) != reason:
                log.warning("target.not-listening target=%s address=%s reason=%s", target, self._bind_address, reason)
            self._reasons[target] = reason
            return
        for each in server.sockets:
            keep_alive(each)
        self._listening[target] = server
        self._reasons.pop(target, None)
        log.info("target.listening target=%s address=%s", target, self._bind_address)
