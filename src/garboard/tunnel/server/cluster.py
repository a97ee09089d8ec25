"""One cluster's share of a server: its agents, its front end, and who may join. Clusters share nothing but the port."""

import asyncio
import os
import random
import ssl
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final

from garboard.rpc import ServerCall
from garboard.rpc.aio import AioLink
from garboard.tunnel.flow import StallWatch
from garboard.tunnel.metrics import Counter
from garboard.tunnel.server.agent_stream import ServerIdentity, accept_agent, refuse_agent
from garboard.tunnel.server.grpc_front import GrpcFront
from garboard.tunnel.server.grpc_port import FRONT_STREAMS, GrpcPort
from garboard.tunnel.server.http_front import HttpFront
from garboard.tunnel.server.options import ServerOptions
from garboard.tunnel.server.proxy import Proxy
from garboard.tunnel.server.routing import Backends
from garboard.tunnel.server.tenants import Mode, Tenant
from garboard.tunnel.server.token_gate import Pace, TokenGate
from garboard.tunnel.server.tokens import AgentRefused
from garboard.tunnel.sockets import BACKLOG, keep_alive
from garboard.tunnel.switchboard import Times
from garboard.tunnel.tls import ListenerKeys, Listening, TlsPolicy, handshake
from garboard.tunnel.web import cannot_listen

DEFAULT_DIAL_S: Final = 30.0  # as long as an API server waits
DEFAULT_QPS: Final = 50.0
DEFAULT_BURST: Final = 100


class Cluster:
    """Made by the server for every tenant; `listen` opens its front end."""

    def __init__(self, tenant: Tenant, options: ServerOptions, identity: ServerIdentity) -> None:
        self.tenant = tenant
        self._identity = identity
        times = Times(dial_s=options.backend_dial_timeout_s or DEFAULT_DIAL_S)
        self.watch = StallWatch(options.patience)
        backends = Backends(options.proxy_strategies, random.randrange)
        self.proxy = Proxy(backends, times=times, watch=self.watch, allowed=tenant.allowed)
        self.denials = Counter("reason")
        self.proxy.metrics.add({"agent_denials_total": ("Agents that were not let in, by reason.", self.denials)})
        self.keys = ListenerKeys(tenant.keys, options.tls)
        self.front_keys: ListenerKeys | None = None
        self.fronts = GrpcPort(
            "/ProxyService/Proxy",
            lambda link, call: GrpcFront(self.proxy, link, call),
            options.frontend_keepalive_s,
            self._front_objection,
            streams=FRONT_STREAMS,
        )
        self.server_port = 0
        self._policy = options.tls
        self._gate = _gate(tenant, options)
        self._reviews: set[asyncio.Task[None]] = set()
        self._listener: asyncio.Server | None = None

    def take_agent(self, link: AioLink, call: ServerCall) -> None:
        """A Connect call on a connection that has been let in; with tokens, it waits for the review of its own."""
        if self._gate is None:
            accept_agent(self.proxy, self._identity, link, call)
            return
        review = link.loop.create_task(self._review(self._gate, link, call))
        self._reviews.add(review)
        review.add_done_callback(self._reviews.discard)

    def objection(self, peer: ssl.SSLObject) -> str:
        """Why a connection to the agent port is not let in."""
        reason = self.keys.objection(peer)
        if reason:
            self.denials.of("certificate").value += 1
        return reason

    async def listen(self) -> None:
        """Open the front end."""
        self._listener = await self._open_front()

    async def _open_front(self) -> asyncio.Server:
        front = self.tenant.front
        accept: Callable[[], asyncio.BaseProtocol] = self.fronts.accept
        if front.mode is Mode.HTTP_CONNECT:
            accept = self._accept_http
        if front.uds_name:
            return await self._listen_on_socket(accept)
        assert front.keys is not None
        policy = TlsPolicy(
            minimum=self._policy.minimum, ciphers=self._policy.ciphers, speaks_h2=front.mode is Mode.GRPC
        )
        keys = self.front_keys = ListenerKeys(front.keys, policy)
        tls = Listening(lambda _name: keys, policy)
        tls.ask_for([keys])
        place = (front.bind_address or None, front.port)
        loop = asyncio.get_running_loop()
        server = await listening(
            loop.create_server(accept, *place, backlog=BACKLOG, **handshake(tls)), f"port {front.port}"
        )
        self.server_port = int(server.sockets[0].getsockname()[1])
        return server

    def stop(self) -> None:
        """Take nothing new."""
        if self._listener is not None:
            self._listener.close()
        for review in self._reviews:
            review.cancel()

    async def _review(self, gate: TokenGate, link: AioLink, call: ServerCall) -> None:
        try:
            await gate.check(call.metadata)
        except AgentRefused as refused:
            self.denials.of("token").value += 1
            refuse_agent(link, call, refused)
        else:
            if call.status is None:
                accept_agent(self.proxy, self._identity, link, call)

    def _accept_http(self) -> HttpFront:
        if self.front_keys is None:
            return HttpFront(self.proxy)
        return SecureHttpFront(self.proxy, self._front_objection)

    def _front_objection(self, peer: ssl.SSLObject | None) -> str:
        return self.front_keys.objection(peer) if self.front_keys is not None and peer is not None else ""

    async def _listen_on_socket(self, accept: Callable[[], asyncio.BaseProtocol]) -> asyncio.Server:
        path = Path(self.tenant.front.uds_name)
        if path.exists() and not self.tenant.front.delete_existing_uds_file:
            raise cannot_listen(str(path), FileExistsError(17, "File exists"))
        mask = os.umask(0o007)
        try:
            loop = asyncio.get_running_loop()
            return await listening(loop.create_unix_server(accept, str(path), backlog=BACKLOG), str(path))
        finally:
            os.umask(mask)


class SecureHttpFront(HttpFront):
    """A front end whose client is looked at once more when TLS has been agreed on."""

    def __init__(self, proxy: Proxy, objection: Callable[[ssl.SSLObject | None], str]) -> None:
        super().__init__(proxy)
        self._objection = objection
        self._is_refused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._is_refused = bool(self._objection(transport.get_extra_info("ssl_object")))
        if self._is_refused:
            transport.abort()  # type: ignore[attr-defined]  # what the loop gives is a Transport
        else:
            super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if not self._is_refused:
            super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._is_refused:
            super().connection_lost(exc)


async def listening(starting: Coroutine[Any, Any, asyncio.Server], place: str) -> asyncio.Server:
    """The server once it listens; an address that cannot be had is told in words."""
    try:
        server = await starting
    except OSError as error:
        raise cannot_listen(place, error) from error
    for each in server.sockets:
        keep_alive(each)
    return server


def _gate(tenant: Tenant, options: ServerOptions) -> TokenGate | None:
    if tenant.token_rules is None:
        return None
    assert options.reviewer_for is not None, "tokens need somebody who reviews them"
    pace = Pace(options.review_qps or DEFAULT_QPS, options.review_burst or DEFAULT_BURST)
    return TokenGate(tenant.token_rules, options.reviewer_for(tenant.kubeconfig), pace)
