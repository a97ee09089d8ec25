"""The connections of one gRPC listener, and who of them is let in."""

import asyncio
import logging
import ssl
from collections.abc import Callable
from typing import Final

from garboard.rpc import Http2Config, KeepaliveConfig, Limits, RpcConfig, ServerCall, ServerEndpoint, Status, StatusCode
from garboard.rpc.aio import AioLink

# An API server may put all of its tunnels on one connection. An agent has one stream on each of its own.
FRONT_STREAMS: Final = 100_000
AGENT_STREAMS: Final = 16

log = logging.getLogger("garboard.tunnel")


class PortLink(AioLink):
    """A link that its port knows from the moment it is connected: TLS handshakes that fail never get so far."""

    port: "GrpcPort"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        objection = self.port.objection(transport.get_extra_info("ssl_object"))
        if objection:
            log.warning("peer.refused from=%s reason=%s", transport.get_extra_info("peername"), objection)
            self.transport = transport  # type: ignore[assignment]  # transports of other loops only look like asyncio's
            self.abort(objection)
            return
        self.port.links.add(self)
        super().connection_made(transport)


class GrpcPort:
    """A listener for one method, each call of which goes to `take`; peers with an objection to them are cut off."""

    def __init__(
        self,
        method: str,
        take: Callable[[AioLink, ServerCall], object],
        keepalive_s: float,
        objection: Callable[[ssl.SSLObject | None], str] = lambda _peer: "",
        *,
        streams: int,
    ) -> None:
        self._method = method
        self._take = take
        self._keepalive = KeepaliveConfig(keepalive_s)
        self._config = RpcConfig(http2=Http2Config(limits=Limits(concurrent_streams=streams)))
        self.objection = objection
        self.links: set[AioLink] = set()

    def accept(self) -> AioLink:
        link = PortLink(
            ServerEndpoint(config=self._config),
            on_call=self._on_call,
            on_change=self._on_change,
            keepalive=self._keepalive,
        )
        link.port = self
        return link

    def shut_down(self) -> None:
        """Take no new calls."""
        for link in self.links:
            link.endpoint.http.shut_down()
            link.poke()

    async def close(self) -> None:
        links = tuple(self.links)
        for link in links:
            link.close("the proxy server is stopping")
        made = [link.lost for link in links if link.transport is not None]
        if made:
            await asyncio.wait(made, timeout=2)

    def _on_call(self, link: AioLink, call: ServerCall) -> None:
        if link not in self.links:
            call.finish(Status(StatusCode.PERMISSION_DENIED, "this connection was refused"))
        elif call.method == self._method:
            self._take(link, call)
        else:
            call.finish(Status(StatusCode.UNIMPLEMENTED, f"unknown method {call.method}"))

    def _on_change(self, link: AioLink) -> None:
        if link.is_lost:
            self.links.discard(link)
