"""Connections of the node to the control plane: a listening port for every target, and the clients that come to it."""

import asyncio
import logging
import os
from typing import Final

from garboard.tunnel.agent.servers import Servers
from garboard.tunnel.destinations import NodeTarget
from garboard.tunnel.frontend.protocol import TunnelTimeouts
from garboard.tunnel.frontend.socket_frontend import SocketFrontend
from garboard.tunnel.frontend.tunnels import Tunnels
from garboard.tunnel.log_text import quoted
from garboard.tunnel.metrics import Counter
from garboard.tunnel.wire.flow import StallWatch
from garboard.tunnel.wire.sockets import BACKLOG, address_text, keep_alive

# A server bounds its own dial by five seconds; this is for one that is silent.
DIAL_TIMEOUT_S: Final = 10.0
BIND_AGAIN_S: Final = 1.0
MOST_CLIENTS: Final = 10_000

log = logging.getLogger("garboard.tunnel")


class LocalClient(SocketFrontend):
    """A connection of the node; if its dial fails it is reset, as if nothing listened at the destination."""

    def __init__(self, ports: "TargetPorts", target: NodeTarget) -> None:
        super().__init__(ports.tunnels)
        self._ports = ports
        self._target = target

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._ports.clients += 1
        if self._ports.clients > MOST_CLIENTS:
            self.refused(f"more than {MOST_CLIENTS} clients on this node")
            return
        self.tunnel.client = address_text(transport.get_extra_info("peername"))
        self.tunnels.dial_to(self.tunnel, str(self._target.destination))

    def connection_lost(self, exc: Exception | None) -> None:
        self._ports.clients -= 1
        super().connection_lost(exc)

    def accepted(self) -> None:
        self._ports.dials.of(str(self._target.destination), "accepted").value += 1

    def refused(self, error: str) -> None:
        self._ports.dials.of(str(self._target.destination), "refused").value += 1
        log.warning("target.dial.failed target=%s error=%s", self._target, quoted(error))
        self.cut()


class TargetPorts:
    """Listens for every target, as soon as the address to listen on is there."""

    def __init__(self, bind_address: str, targets: tuple[NodeTarget, ...], watch: StallWatch) -> None:
        self._bind_address = bind_address
        self.targets = targets
        self.servers = Servers()
        self.tunnels = Tunnels(self.servers, timeouts=TunnelTimeouts(dial_s=DIAL_TIMEOUT_S), watch=watch)
        self.dials = Counter("target", "outcome")
        self.clients = 0
        self._listening: dict[NodeTarget, asyncio.Server] = {}
        self._reasons: dict[NodeTarget, str] = {}

    async def run(self) -> None:
        """Listen, and try again where that fails: the address may be set up after us. For ever."""
        while True:
            for target in self.targets:
                if target not in self._listening:
                    await self._listen(target)
            await asyncio.sleep(BIND_AGAIN_S)

    def port_of(self, target: NodeTarget) -> int:
        """Where a target that is listened for can be reached: its own port, or the one that was free."""
        port: int = self._listening[target].sockets[0].getsockname()[1]
        return port

    def failures(self) -> dict[NodeTarget, str]:
        """Why a target cannot be reached through us now."""
        found: dict[NodeTarget, str] = {}
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
        for frontend in list(self.tunnels.frontends.values()):
            frontend.disconnect()

    async def _listen(self, target: NodeTarget) -> None:
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
