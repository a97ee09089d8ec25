"""A gRPC listener: its connections, and which of them are refused."""

import asyncio
import logging
import ssl
from collections.abc import Callable
from typing import Final

from garboard.rpc import Http2Config, KeepaliveConfig, Limits, RpcConfig, ServerCall, ServerEndpoint, Status, StatusCode
from garboard.rpc.aio import AioLink
from garboard.rpc.limits import KIB, Rate
from garboard.tunnel.log_text import quoted
from garboard.tunnel.server.accepting import Slot
from garboard.tunnel.wire.sockets import address_text

# An API server may put all of its tunnels on one connection.
FRONT_LIMITS: Final = Limits(concurrent_streams=100_000)
# An agent has one stream on a connection of its own, and its port is open to whoever reaches it.
AGENT_LIMITS: Final = Limits(
    concurrent_streams=16,
    header_list_bytes=32 * KIB,
    header_fields=64,
    header_bytes=Rate(64 * KIB, 4 * KIB),
    resets=Rate(100, 5),
    settings=Rate(20, 1),
    idle_frames=Rate(500, 50),
    strays=Rate(200, 20),
)

FIRST_CALL_S: Final = 10.0
STOPPING: Final = "the proxy server is stopping"

log = logging.getLogger("garboard.tunnel")


class PortLink(AioLink):
    """A link that its port knows from the moment it is connected: TLS handshakes that fail never get so far."""

    port: "GrpcPort"
    slot: Slot | None = None  # until it has made its first call

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # One that was in the middle of its handshake when the port closed comes too late.
        is_late = self.port.is_closed
        objection = STOPPING if is_late else self.port.objection(transport.get_extra_info("ssl_object"))
        if objection:
            log.warning(
                "peer.refused from=%s reason=%s", address_text(transport.get_extra_info("peername")), quoted(objection)
            )
            self.transport = transport  # type: ignore[assignment]  # transports of other loops only look like asyncio's
            self.abort(objection)
            return
        self.port.links.add(self)
        super().connection_made(transport)
        if self.slot is not None:
            self._timers["first call"] = self.loop.call_later(FIRST_CALL_S, self._check_calls)

    def connection_lost(self, exc: Exception | None) -> None:
        self.release_slot()
        super().connection_lost(exc)

    def release_slot(self) -> None:
        if self.slot is not None:
            self.slot.release()
            self.slot = None

    def _check_calls(self) -> None:
        if self.slot is not None:
            self.abort("it made no call in time")


class GrpcPort:
    """A listener for one method, each call of which goes to `take`; `objection` is the reason to cut a peer off."""

    def __init__(
        self,
        method: str,
        take: Callable[[AioLink, ServerCall], object],
        keepalive_s: float,
        objection: Callable[[ssl.SSLObject | None], str] = lambda _peer: "",
        *,
        limits: Limits,
    ) -> None:
        self._method = method
        self._take = take
        self._keepalive = KeepaliveConfig(keepalive_s)
        self._config = RpcConfig(http2=Http2Config(limits=limits))
        self.objection = objection
        self.links: set[AioLink] = set()
        self.is_closed = False

    def accept(self, slot: Slot | None = None) -> AioLink:
        link = PortLink(
            ServerEndpoint(config=self._config),
            on_call=self._on_call,
            on_change=self._on_change,
            keepalive=self._keepalive,
        )
        link.port = self
        link.slot = slot
        return link

    def shut_down(self) -> None:
        """Take no new calls."""
        for link in self.links:
            link.endpoint.http.shut_down()
            link.poke()

    async def close(self) -> None:
        self.is_closed = True
        links = tuple(self.links)
        for link in links:
            link.close(STOPPING)
        made = [link.lost for link in links if link.transport is not None]
        if made:
            await asyncio.wait(made, timeout=2)

    def _on_call(self, link: AioLink, call: ServerCall) -> None:
        assert isinstance(link, PortLink)
        link.release_slot()
        if link not in self.links:
            call.finish(Status(StatusCode.PERMISSION_DENIED, "this connection was refused"))
        elif call.method == self._method:
            self._take(link, call)
        else:
            call.finish(Status(StatusCode.UNIMPLEMENTED, f"unknown method {call.method}"))

    def _on_change(self, link: AioLink) -> None:
        if link.is_lost:
            self.links.discard(link)
