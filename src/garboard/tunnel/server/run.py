"""A whole proxy server: its listeners, its pages, and how it ends."""

import asyncio
import contextlib
import logging
import os
import random
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from garboard.rpc import Http2Config, KeepaliveConfig, Limits, RpcConfig, ServerCall, ServerEndpoint, Status, StatusCode
from garboard.rpc.aio import AioLink
from garboard.tunnel.background import beside
from garboard.tunnel.flow import StallWatch
from garboard.tunnel.server.agent_stream import ServerIdentity, accept_agent
from garboard.tunnel.server.grpc_front import GrpcFront
from garboard.tunnel.server.http_front import HttpFront
from garboard.tunnel.server.options import KeyPair, Mode, ServerOptions
from garboard.tunnel.server.proxy import Proxy
from garboard.tunnel.server.routing import Backends
from garboard.tunnel.switchboard import Times
from garboard.tunnel.tls import ListenerKeys
from garboard.tunnel.web import OK, Page, PageMaker, cannot_listen, serve_pages

# An API server may put all of its tunnels on one connection.
CONFIG: Final = RpcConfig(http2=Http2Config(limits=Limits(concurrent_streams=100_000)))
CERTIFICATES_EVERY_S: Final = 10.0
DEFAULT_DIAL_S: Final = 30.0  # as long as an API server waits

log = logging.getLogger("garboard.tunnel")


class _Link(AioLink):
    """A link that its port knows from the moment it is connected: TLS handshakes that fail never get so far."""

    port: "GrpcPort"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.port.links.add(self)
        super().connection_made(transport)


class GrpcPort:
    """The connections of one gRPC listener, each call of which goes to `take`."""

    def __init__(self, method: str, take: Callable[[AioLink, ServerCall], object], keepalive_s: float) -> None:
        self._method = method
        self._take = take
        self._keepalive = KeepaliveConfig(keepalive_s)
        self.links: set[AioLink] = set()

    def accept(self) -> AioLink:
        link = _Link(
            ServerEndpoint(config=CONFIG), on_call=self._on_call, on_change=self._on_change, keepalive=self._keepalive
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
        if call.method == self._method:
            self._take(link, call)
        else:
            call.finish(Status(StatusCode.UNIMPLEMENTED, f"unknown method {call.method}"))

    def _on_change(self, link: AioLink) -> None:
        if link.is_lost:
            self.links.discard(link)


class ProxyServer:
    """A server that listens; make it with `serve`."""

    def __init__(self, options: ServerOptions) -> None:
        self._options = options
        times = Times(dial_s=options.backend_dial_timeout_s or DEFAULT_DIAL_S)
        backends = Backends(options.proxy_strategies, random.randrange)
        self.watch = StallWatch(options.patience)
        self.proxy = Proxy(backends, times=times, watch=self.watch, allowed=options.allowed)
        identity = ServerIdentity(options.server_id, options.server_count)
        self.agents = GrpcPort(
            "/AgentService/Connect",
            lambda link, call: accept_agent(self.proxy, identity, link, call),
            options.keepalive_s,
        )
        self.fronts = GrpcPort(
            "/ProxyService/Proxy", lambda link, call: GrpcFront(self.proxy, link, call), options.frontend_keepalive_s
        )
        self.agent_port = self.server_port = self.health_port = self.admin_port = 0
        self._listeners: list[asyncio.Server] = []
        self.keys: list[ListenerKeys] = []
        self._is_stopping = False

    async def listen(self) -> None:
        options, loop = self._options, asyncio.get_running_loop()
        assert options.cluster_keys is not None
        tls = self._tls(options.cluster_keys, speaks_h2=True)
        place = (options.agent_bind_address or None, options.agent_port)
        self.agent_port = await self._add(loop.create_server(self.agents.accept, *place, ssl=tls), f"port {place[1]}")
        accept: Callable[[], asyncio.BaseProtocol] = self.fronts.accept
        if options.mode is Mode.HTTP_CONNECT:
            accept = lambda: HttpFront(self.proxy)  # noqa: E731  # a def would need a name for the same thing
        if options.uds_name:
            await self._listen_on_socket(accept)
            return
        assert options.server_keys is not None
        tls = self._tls(options.server_keys, speaks_h2=options.mode is Mode.GRPC)
        place = (options.server_bind_address or None, options.server_port)
        self.server_port = await self._add(loop.create_server(accept, *place, ssl=tls), f"port {place[1]}")

    async def stop(self) -> int:
        """Take nothing new, wait for what is open as long as the options say; how many were cut is returned."""
        self._is_stopping = True
        for listener in self._listeners:
            listener.close()
        self.fronts.shut_down()
        deadline = asyncio.get_running_loop().time() + self._options.graceful_shutdown_s
        while self.proxy.open_connections and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.05)
        cut = self.proxy.disconnect_all()
        await self.agents.close()
        await self.fronts.close()
        log.info("server.stopped cut_connections=%d", cut)
        return cut

    async def keep_certificates(self) -> None:
        """Look for new certificates on disk, for ever."""
        while True:
            await asyncio.sleep(CERTIFICATES_EVERY_S)
            for keys in self.keys:
                keys.refresh()

    def pages(self) -> dict[str, PageMaker]:
        return {
            "/healthz": lambda _verbose: OK,
            "/readyz": self._readiness,
            "/ready": self._readiness,
            "/metrics": lambda _verbose: Page(HTTPStatus.OK, self.proxy.metrics.text()),
        }

    def _readiness(self, _verbose: bool) -> Page:
        if self._is_stopping:
            return Page(HTTPStatus.INTERNAL_SERVER_ERROR, "the proxy server is stopping")
        if self.proxy.backends.is_ready:
            return OK
        return Page(HTTPStatus.INTERNAL_SERVER_ERROR, "no connection to any proxy agent")

    def _tls(self, keys: KeyPair, *, speaks_h2: bool) -> ssl.SSLContext:
        self.keys.append(ListenerKeys(keys.certificate, keys.key, keys.client_ca, speaks_h2=speaks_h2))
        return self.keys[-1].context

    async def _add(self, listening: Coroutine[Any, Any, asyncio.Server], place: str) -> int:
        try:
            server = await listening
        except OSError as error:
            raise cannot_listen(place, error) from error
        self._listeners.append(server)
        return int(server.sockets[0].getsockname()[1]) if server.sockets[0].family.name != "AF_UNIX" else 0

    async def _listen_on_socket(self, accept: Callable[[], asyncio.BaseProtocol]) -> None:
        path = Path(self._options.uds_name)
        if path.exists() and not self._options.delete_existing_uds_file:
            raise cannot_listen(str(path), FileExistsError(17, "File exists"))
        mask = os.umask(0o007)
        try:
            loop = asyncio.get_running_loop()
            await self._add(loop.create_unix_server(accept, str(path)), str(path))
        finally:
            os.umask(mask)


@contextlib.asynccontextmanager
async def serve(options: ServerOptions) -> AsyncIterator[ProxyServer]:
    """Serve while the context is open; leaving it stops the server as the options say."""
    options.check()
    server = ProxyServer(options)
    pages = server.pages()
    async with (
        serve_pages(options.health_bind_address, options.health_port, pages) as server.health_port,
        serve_pages(options.admin_bind_address, options.admin_port, {"/metrics": pages["/metrics"]}) as admin_port,
        beside(server.proxy.keep_time(), server.watch.run(), server.keep_certificates()),
    ):
        server.admin_port = admin_port
        try:
            await server.listen()
            log.info("server.listening agents=%d front=%s", server.agent_port, options.uds_name or server.server_port)
            yield server
        finally:
            await server.stop()
