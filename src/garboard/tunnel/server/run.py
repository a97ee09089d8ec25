"""A whole proxy server: its port for agents, the clusters behind it, its pages, and how it ends."""

import asyncio
import contextlib
import logging
import ssl
import time
from collections.abc import AsyncIterator
from http import HTTPStatus
from pathlib import Path
from typing import Final

from garboard.rpc import ServerCall, Status, StatusCode
from garboard.rpc.aio import AioLink
from garboard.tunnel.background import beside
from garboard.tunnel.frontend.tunnels import TICK_S
from garboard.tunnel.metrics import Metric, Metrics, Total, text_by_tenant
from garboard.tunnel.server.accepting import AGENTS_LEAVE, TlsListener
from garboard.tunnel.server.agent_stream import ServerIdentity
from garboard.tunnel.server.cluster import ServedCluster
from garboard.tunnel.server.clusters import ServedClusters
from garboard.tunnel.server.grpc_port import AGENT_LIMITS, GrpcPort
from garboard.tunnel.server.lease_controller import CULLED, LeaseController
from garboard.tunnel.server.options import ServerOptions
from garboard.tunnel.server.proxy import PREFIX, Proxy
from garboard.tunnel.server.sharing import Sharing
from garboard.tunnel.server.status import ServerTracer, server_document
from garboard.tunnel.server.tenants import Tenant
from garboard.tunnel.tls import ListenerKeys, handshake
from garboard.tunnel.web import OK, Page, PageMaker, Question, json_page, serve_pages
from garboard.tunnel.wire.flow import TICK_S as STALL_TICK_S
from garboard.tunnel.wire.flow import BufferLimit, tell_shed
from garboard.tunnel.wire.sockets import KEEPALIVE_EVERY_S, give_up_soon

FILES_EVERY_S: Final = 10.0

log = logging.getLogger("garboard.tunnel")


class ProxyServer:
    """A server that listens; make it with `serve`."""

    def __init__(self, options: ServerOptions, sharing: Sharing | None = None) -> None:
        self._options = options
        self._sharing = sharing
        self.identity = sharing.identity if sharing else ServerIdentity(options.server_id, options.server_count)
        self._clusters = ServedClusters(options, self.identity, sharing)
        self.agents = GrpcPort(
            "/AgentService/Connect", self._take_agent, options.keepalive_s, self._objection, limits=AGENT_LIMITS
        )
        self.agent_port = self.health_port = self.admin_port = 0
        self._leases = LeaseController(options.lease_store, options.server_id) if options.lease_store else None
        no_leases: dict[str, tuple[str, Metric]] = {"culled_leases_count": (CULLED, Total(lambda: 0))}
        self._own_metrics = Metrics(PREFIX, self._leases.families() if self._leases else no_leases)
        self._listener: TlsListener | None = None
        self._is_stopping = False
        self.cut_connections = 0  # when it stopped

    @property
    def clusters(self) -> tuple[ServedCluster, ...]:
        return self._clusters.all

    @property
    def proxy(self) -> Proxy:
        """The proxy of the only cluster, or of the first."""
        return self.clusters[0].proxy

    @property
    def keys(self) -> list[ListenerKeys]:
        """Everything that is read again when its files change."""
        return self._clusters.keys

    @property
    def server_port(self) -> int:
        return self.clusters[0].server_port

    async def listen(self) -> None:
        options = self._options
        self._listener = TlsListener(
            self.agents.accept, handshake(self._clusters.tls), leaves=AGENTS_LEAVE, workers=options.workers
        )
        is_shared = self._sharing is not None
        await self._listener.listen(options.agent_bind_address, options.agent_port, is_shared=is_shared)
        for each in self._listener.sockets:
            give_up_soon(each)  # what it accepts inherits it
        self.agent_port = self._listener.port
        for cluster in self.clusters:
            await cluster.listen()

    async def stop(self) -> int:
        """Take nothing new, wait for what is open as long as the options say; how many were cut is returned."""
        self._is_stopping = True
        self.identity.present = ()
        if self._listener is not None and self._sharing is not None:
            self._listener.drain()  # the other workers would take nothing of it
        elif self._listener is not None:
            self._listener.close()
        for cluster in self.clusters:
            cluster.stop()
            cluster.proxy.drain()
            cluster.frontend_port.shut_down()
        if self._sharing is not None:
            self._sharing.close_fronts()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._options.graceful_shutdown_s):
                while any(each.proxy.open_connections for each in self.clusters):
                    await asyncio.sleep(0.05)
        cut = self.cut_connections = sum(cluster.proxy.disconnect_all() for cluster in self.clusters)
        if self._leases is not None:
            await self._leases.release()
        await self.agents.close()
        if self._listener is not None:
            self._listener.close()  # handshakes of what came last
        for cluster in self.clusters:
            await cluster.frontend_port.close()
        log.info("server.stopped cut_connections=%d", cut)
        return cut

    async def keep_files(self) -> None:
        """Look for new certificates, authorities and tenants on disk, for ever."""
        while True:
            await asyncio.sleep(FILES_EVERY_S)
            self.refresh_certificates()
            await self.refresh_tenants()

    async def keep_alive(self) -> None:
        """Keep turning TCP keepalive on for new destinations, for ever."""
        while True:
            await asyncio.sleep(KEEPALIVE_EVERY_S)
            for stream in [stream for each in self.clusters for stream in each.proxy.streams.values()]:
                stream.keep_endpoints_alive()

    def refresh_certificates(self) -> None:
        self._clusters.refresh_certificates()

    async def refresh_tenants(self) -> None:
        """Serve the tenants of the file as it is now: those that are gone or changed are cut off, and no others."""
        for gone in await self._clusters.refresh_tenants():
            await self._cut_off(gone)
            self._forget_socket(gone)

    async def use_tenants(self, tenants: tuple[Tenant, ...]) -> None:
        """The same for tenants that a supervisor has read; it owns the sockets. Raises what forbids it."""
        for gone in await self._clusters.use_tenants(tenants):
            await self._cut_off(gone)

    async def _cut_off(self, gone: ServedCluster) -> None:
        gone.stop()
        cut = gone.proxy.disconnect_all()
        for link in tuple(self.agents.links):
            peer = _peer_of(link)
            if peer is not None and self._clusters.tls.owner_of(peer) is gone.keys:
                link.close("the tenant of this name was changed or removed")
        await gone.frontend_port.close()
        log.info("tenant.closed tenant=%s cut_connections=%d", gone.tenant.name, cut)

    def _forget_socket(self, gone: ServedCluster) -> None:
        path = gone.tenant.frontend.uds_name
        if path not in {each.tenant.frontend.uds_name for each in self.clusters}:
            Path(path).unlink(missing_ok=True)

    async def keep_time(self) -> None:
        """End what waits too long, for ever."""
        while True:
            await asyncio.sleep(TICK_S)
            for each in self.clusters:
                each.proxy.expire()

    async def watch_stalls(self) -> None:
        """Give up receivers that stall, for ever."""
        limit = BufferLimit(self._options.stall_policy.most_bytes)
        while True:
            await asyncio.sleep(STALL_TICK_S)
            now = time.monotonic()
            for each in self.clusters:
                each.watch.look(now)
            tell_shed(limit.enforce([each.watch for each in self.clusters], now))

    async def keep_lease(self) -> None:
        if self._leases is not None:
            await self._leases.run()

    def admin_pages(self) -> dict[str, PageMaker]:
        """Of the admin port, which only administrators reach."""
        status = lambda _verbose: json_page(server_document(self._options.server_id, self._clusters))  # noqa: E731
        return {"/metrics": self.pages()["/metrics"], "/status": status}

    def questions(self) -> dict[str, Question]:
        return {"/trace": ServerTracer(self._clusters)}

    def pages(self) -> dict[str, PageMaker]:
        return {
            "/healthz": lambda _verbose: OK,
            "/readyz": self._readiness,
            "/ready": self._readiness,
            "/metrics": lambda _verbose: Page(HTTPStatus.OK, self._metrics()),
        }

    def _metrics(self) -> str:
        if not self._options.tenants:
            return self.proxy.metrics.text() + self._own_metrics.text()
        return (
            text_by_tenant({each.tenant.name: each.proxy.metrics for each in self.clusters}) + self._own_metrics.text()
        )

    def _readiness(self, _verbose: bool) -> Page:
        if self._is_stopping:
            return Page(HTTPStatus.INTERNAL_SERVER_ERROR, "the proxy server is stopping")
        if any(each.proxy.backends.is_ready for each in self.clusters):
            return OK
        return Page(HTTPStatus.INTERNAL_SERVER_ERROR, "no connection to any proxy agent")

    # Agents, told apart by the server name that they ask for.

    def _objection(self, peer: ssl.SSLObject | None) -> str:
        cluster = self._clusters.owner_of(peer)
        if cluster is None or peer is None:
            return "it asked for no cluster of this server"
        return cluster.objection(peer)

    def _take_agent(self, link: AioLink, call: ServerCall) -> None:
        cluster = self._clusters.owner_of(_peer_of(link))
        if cluster is None:  # it came in before the tenants were changed
            call.finish(Status(StatusCode.UNAVAILABLE, "the tenant of this name was changed or removed"))
            return
        cluster.take_agent(link, call)


def _peer_of(link: AioLink) -> ssl.SSLObject | None:
    peer: ssl.SSLObject | None = link.transport.get_extra_info("ssl_object") if link.transport is not None else None
    return peer


@contextlib.asynccontextmanager
async def serve(options: ServerOptions) -> AsyncIterator[ProxyServer]:
    """Serve while the context is open; leaving it stops the server as the options say."""
    options.check()
    server = ProxyServer(options)
    admin = (options.admin_bind_address, options.admin_port)
    async with (
        serve_pages(options.health_bind_address, options.health_port, server.pages()) as server.health_port,
        serve_pages(*admin, server.admin_pages(), server.questions()) as server.admin_port,
        run_server(server),
    ):
        yield server


@contextlib.asynccontextmanager
async def run_server(server: ProxyServer) -> AsyncIterator[None]:
    """Listen, without the pages, while the context is open; leaving it stops the server."""
    async with beside(
        server.keep_time(), server.watch_stalls(), server.keep_files(), server.keep_alive(), server.keep_lease()
    ):
        try:
            await server.listen()
            frontends = ",".join(each.tenant.frontend.uds_name or str(each.server_port) for each in server.clusters)
            log.info("server.listening agents=%d front=%s", server.agent_port, frontends)
            yield
        finally:
            await server.stop()
