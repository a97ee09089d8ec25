"""A whole proxy server: its port for agents, the clusters behind it, its pages, and how it ends."""

import asyncio
import contextlib
import logging
import ssl
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Final

from garboard.errors import NotReady
from garboard.rpc import ServerCall
from garboard.rpc.aio import AioLink
from garboard.tunnel.background import beside
from garboard.tunnel.metrics import text_by_tenant
from garboard.tunnel.server.agent_stream import ServerIdentity
from garboard.tunnel.server.cluster import Cluster, listening
from garboard.tunnel.server.grpc_port import AGENT_STREAMS, GrpcPort
from garboard.tunnel.server.lease_keeper import LeaseKeeper
from garboard.tunnel.server.options import ServerOptions
from garboard.tunnel.server.proxy import Proxy
from garboard.tunnel.server.status import ServerTracer, server_document
from garboard.tunnel.server.tenants import canonical_name
from garboard.tunnel.sockets import BACKLOG
from garboard.tunnel.tls import ListenerKeys, Listening
from garboard.tunnel.web import OK, Page, PageMaker, Question, json_page, serve_pages

CERTIFICATES_EVERY_S: Final = 10.0

log = logging.getLogger("garboard.tunnel")


class ProxyServer:
    """A server that listens; make it with `serve`."""

    def __init__(self, options: ServerOptions) -> None:
        self._options = options
        identity = ServerIdentity(options.server_id, options.server_count)
        self.clusters = tuple(Cluster(tenant, options, identity) for tenant in options.clusters())
        _refuse_shared_authorities(self.clusters)
        self._by_name = {name: each for each in self.clusters for name in each.tenant.server_names}
        self._by_keys = {each.keys: each for each in self.clusters}
        self._tls = Listening(self._keys_for, self._by_keys, options.tls)
        self.agents = GrpcPort(
            "/AgentService/Connect", self._take_agent, options.keepalive_s, self._objection, streams=AGENT_STREAMS
        )
        self.agent_port = self.health_port = self.admin_port = 0
        self._leases = LeaseKeeper(options.lease_book, options.server_id) if options.lease_book else None
        if self._leases is not None:
            self.clusters[0].proxy.metrics.add(self._leases.families())
        self._listeners: list[asyncio.Server] = []
        self._is_stopping = False

    @property
    def proxy(self) -> Proxy:
        """Of the only cluster, or the first."""
        return self.clusters[0].proxy

    @property
    def server_port(self) -> int:
        return self.clusters[0].server_port

    @property
    def keys(self) -> list[ListenerKeys]:
        """Everything that is read again when its files change."""
        return [keys for each in self.clusters for keys in (each.keys, each.front_keys) if keys is not None]

    async def listen(self) -> None:
        options, loop = self._options, asyncio.get_running_loop()
        place = (options.agent_bind_address or None, options.agent_port)
        agents = await listening(
            loop.create_server(self.agents.accept, *place, ssl=self._tls.context, backlog=BACKLOG), f"port {place[1]}"
        )
        self._listeners.append(agents)
        self.agent_port = int(agents.sockets[0].getsockname()[1])
        for cluster in self.clusters:
            self._listeners.append(await cluster.listen())

    async def stop(self) -> int:
        """Take nothing new, wait for what is open as long as the options say; how many were cut is returned."""
        self._is_stopping = True
        for listener in self._listeners:
            listener.close()
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

    async def keep_certificates(self) -> None:
        """Look for new certificates and authorities on disk, for ever."""
        while True:
            await asyncio.sleep(CERTIFICATES_EVERY_S)
            self.refresh_certificates()

    def refresh_certificates(self) -> None:
        """Read again what has changed; tenants that have come to trust the same authority are told of in the log."""
        refreshed = [keys for keys in self.keys if keys.refresh()]
        if not refreshed:
            return
        try:
            _refuse_shared_authorities(self.clusters)
        except NotReady as error:
            log.error("tenants.not-apart reason=%s", error.message)

    async def keep_lease(self) -> None:
        if self._leases is not None:
            await self._leases.run()

    def admin_pages(self) -> dict[str, PageMaker]:
        """Of the admin port, which only administrators reach."""
        status = lambda _verbose: json_page(server_document(self._options.server_id, self.clusters))  # noqa: E731
        return {"/metrics": self.pages()["/metrics"], "/status": status}

    def questions(self) -> dict[str, Question]:
        return {"/trace": ServerTracer(self.clusters)}

    def pages(self) -> dict[str, PageMaker]:
        return {
            "/healthz": lambda _verbose: OK,
            "/readyz": self._readiness,
            "/ready": self._readiness,
            "/metrics": lambda _verbose: Page(HTTPStatus.OK, self._metrics()),
        }

    def _metrics(self) -> str:
        if not self._options.tenants:
            return self.proxy.metrics.text()
        return text_by_tenant({each.tenant.name: each.proxy.metrics for each in self.clusters})

    def _readiness(self, _verbose: bool) -> Page:
        if self._is_stopping:
            return Page(HTTPStatus.INTERNAL_SERVER_ERROR, "the proxy server is stopping")
        if any(each.proxy.backends.is_ready for each in self.clusters):
            return OK
        return Page(HTTPStatus.INTERNAL_SERVER_ERROR, "no connection to any proxy agent")

    # Agents, told apart by the name that they ask for.

    def _keys_for(self, name: str | None) -> ListenerKeys | None:
        if not self._options.tenants:
            return self.clusters[0].keys
        found = self._by_name.get(canonical_name(name or ""))
        return found.keys if found is not None else None

    def _cluster_of(self, peer: ssl.SSLObject | None) -> Cluster | None:
        keys = self._tls.owner_of(peer) if peer is not None else None
        return self._by_keys.get(keys) if keys is not None else None

    def _objection(self, peer: ssl.SSLObject | None) -> str:
        cluster = self._cluster_of(peer)
        if cluster is None or peer is None:
            return "it asked for no cluster of this server"
        return cluster.objection(peer)

    def _take_agent(self, link: AioLink, call: ServerCall) -> None:
        assert link.transport is not None
        cluster = self._cluster_of(link.transport.get_extra_info("ssl_object"))
        assert cluster is not None, "a link of no cluster is cut off before it can call"
        cluster.take_agent(link, call)


def _refuse_shared_authorities(clusters: tuple[Cluster, ...]) -> None:
    """Two tenants that trust the same authority would let in each other's agents."""
    owners: dict[bytes, str] = {}
    for cluster in clusters:
        tenant = cluster.tenant
        if tenant.token_rules is not None:
            continue
        for authority in cluster.keys.context.get_ca_certs(binary_form=True):
            other = owners.setdefault(authority, tenant.name)
            if other != tenant.name:
                raise NotReady(
                    f"the tenants {other} and {tenant.name} trust the same authority of agents",
                    hint="give each tenant an authority of its own (`garboard tunnel certs` makes them)",
                    error_class="shared-authority",
                )


@contextlib.asynccontextmanager
async def serve(options: ServerOptions) -> AsyncIterator[ProxyServer]:
    """Serve while the context is open; leaving it stops the server as the options say."""
    options.check()
    server = ProxyServer(options)
    admin = (options.admin_bind_address, options.admin_port)
    jobs = [job for each in server.clusters for job in (each.proxy.keep_time(), each.watch.run())]
    async with (
        serve_pages(options.health_bind_address, options.health_port, server.pages()) as server.health_port,
        serve_pages(*admin, server.admin_pages(), server.questions()) as admin_port,
        beside(*jobs, server.keep_certificates(), server.keep_lease()),
    ):
        server.admin_port = admin_port
        try:
            await server.listen()
            fronts = ",".join(each.tenant.front.uds_name or str(each.server_port) for each in server.clusters)
            log.info("server.listening agents=%d front=%s", server.agent_port, fronts)
            yield server
        finally:
            await server.stop()
