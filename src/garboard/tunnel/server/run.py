"""A whole proxy server: its port for agents, the clusters behind it, its pages, and how it ends."""

import asyncio
import contextlib
import logging
import ssl
from collections.abc import AsyncIterator
from http import HTTPStatus
from pathlib import Path
from typing import Final

from garboard.rpc import ServerCall, Status, StatusCode
from garboard.rpc.aio import AioLink
from garboard.tunnel.background import beside
from garboard.tunnel.entry import TICK_S
from garboard.tunnel.flow import TICK_S as STALL_TICK_S
from garboard.tunnel.metrics import Metric, Metrics, Total, text_by_tenant
from garboard.tunnel.server.agent_stream import ServerIdentity
from garboard.tunnel.server.cluster import Cluster, listening
from garboard.tunnel.server.clusters import Clusters
from garboard.tunnel.server.grpc_port import AGENT_STREAMS, GrpcPort
from garboard.tunnel.server.lease_keeper import CULLED, LeaseKeeper
from garboard.tunnel.server.options import ServerOptions
from garboard.tunnel.server.proxy import PREFIX, Proxy
from garboard.tunnel.server.status import ServerTracer, server_document
from garboard.tunnel.sockets import BACKLOG, KEEPALIVE_EVERY_S
from garboard.tunnel.tls import ListenerKeys, handshake
from garboard.tunnel.web import OK, Page, PageMaker, Question, json_page, serve_pages

FILES_EVERY_S: Final = 10.0

log = logging.getLogger("garboard.tunnel")


class ProxyServer:
    """A server that listens; make it with `serve`."""

    def __init__(self, options: ServerOptions) -> None:
        self._options = options
        self._clusters = Clusters(options, ServerIdentity(options.server_id, options.server_count))
        self.agents = GrpcPort(
            "/AgentService/Connect", self._take_agent, options.keepalive_s, self._objection, streams=AGENT_STREAMS
        )
        self.agent_port = self.health_port = self.admin_port = 0
        self._leases = LeaseKeeper(options.lease_book, options.server_id) if options.lease_book else None
        no_leases: dict[str, tuple[str, Metric]] = {"culled_leases_count": (CULLED, Total(lambda: 0))}
        self._own_metrics = Metrics(PREFIX, self._leases.families() if self._leases else no_leases)
        self._listener: asyncio.Server | None = None
        self._is_stopping = False

    @property
    def clusters(self) -> tuple[Cluster, ...]:
        return self._clusters.all

    @property
    def proxy(self) -> Proxy:
        """Of the only cluster, or the first."""
        return self.clusters[0].proxy

    @property
    def keys(self) -> list[ListenerKeys]:
        """Everything that is read again when its files change."""
        return self._clusters.keys

    @property
    def server_port(self) -> int:
        return self.clusters[0].server_port

    async def listen(self) -> None:
        options, loop = self._options, asyncio.get_running_loop()
        place = (options.agent_bind_address or None, options.agent_port)
        tls = handshake(self._clusters.tls)
        self._listener = await listening(
            loop.create_server(self.agents.accept, *place, backlog=BACKLOG, **tls), f"port {place[1]}"
        )
        self.agent_port = int(self._listener.sockets[0].getsockname()[1])
        for cluster in self.clusters:
            await cluster.listen()

    async def stop(self) -> int:
        """Take nothing new, wait for what is open as long as the options say; how many were cut is returned."""
        self._is_stopping = True
        if self._listener is not None:
            self._listener.close()
        for cluster in self.clusters:
            cluster.stop()
            cluster.fronts.shut_down()
        deadline = asyncio.get_running_loop().time() + self._options.graceful_shutdown_s
        while (
            any(each.proxy.open_connections for each in self.clusters) and asyncio.get_running_loop().time() < deadline
        ):
            await asyncio.sleep(0.05)
        cut = sum(cluster.proxy.disconnect_all() for cluster in self.clusters)
        if self._leases is not None:
            await self._leases.release()
        await self.agents.close()
        for cluster in self.clusters:
            await cluster.fronts.close()
        log.info("server.stopped cut_connections=%d", cut)
        return cut

    async def keep_files(self) -> None:
        """Look for new certificates, authorities and tenants on disk, for ever."""
        while True:
            await asyncio.sleep(FILES_EVERY_S)
            self.refresh_certificates()
            await self.refresh_tenants()

    async def keep_alive(self) -> None:
        """Notice destinations that are gone without a word, for ever."""
        while True:
            await asyncio.sleep(KEEPALIVE_EVERY_S)
            for stream in [stream for each in self.clusters for stream in each.proxy.streams.values()]:
                stream.keep_exits_alive()

    def refresh_certificates(self) -> None:
        self._clusters.refresh_certificates()

    async def refresh_tenants(self) -> None:
        """Serve the tenants of the file as it is now: who is gone from it or changed in it is cut off, nobody else."""
        for gone in await self._clusters.refresh_tenants():
            gone.stop()
            cut = gone.proxy.disconnect_all()
            for link in tuple(self.agents.links):
                peer = _peer_of(link)
                if peer is not None and self._clusters.tls.owner_of(peer) is gone.keys:
                    link.close("the tenant of this name was changed or removed")
            await gone.fronts.close()
            self._forget_socket(gone)
            log.info("tenant.closed tenant=%s cut_connections=%d", gone.tenant.name, cut)

    def _forget_socket(self, gone: Cluster) -> None:
        path = gone.tenant.front.uds_name
        if path not in {each.tenant.front.uds_name for each in self.clusters}:
            Path(path).unlink(missing_ok=True)

    async def keep_time(self) -> None:
        """End what waits too long, for ever."""
        while True:
            await asyncio.sleep(TICK_S)
            for each in self.clusters:
                each.proxy.expire()

    async def watch_stalls(self) -> None:
        """Give up receivers that stall, for ever."""
        while True:
            await asyncio.sleep(STALL_TICK_S)
            for each in self.clusters:
                each.watch.look()

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

    # Agents, told apart by the name that they ask for.

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
        serve_pages(*admin, server.admin_pages(), server.questions()) as admin_port,
        beside(
            server.keep_time(), server.watch_stalls(), server.keep_files(), server.keep_alive(), server.keep_lease()
        ),
    ):
        server.admin_port = admin_port
        try:
            await server.listen()
            fronts = ",".join(each.tenant.front.uds_name or str(each.server_port) for each in server.clusters)
            log.info("server.listening agents=%d front=%s", server.agent_port, fronts)
            yield server
        finally:
            await server.stop()
