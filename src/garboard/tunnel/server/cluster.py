"""One cluster that a server serves: its agents, its frontends, and who may join. Clusters share only the port."""

import asyncio
import os
import random
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Final

from garboard.rpc import ServerCall
from garboard.rpc.aio import AioLink
from garboard.tunnel.frontend.protocol import TunnelTimeouts
from garboard.tunnel.metrics import Counter
from garboard.tunnel.server.accepting import FRONT_LEAVES, Slot, TlsListener
from garboard.tunnel.server.agent_stream import ServerIdentity, accept_agent, certified_name, host_of, refuse_agent
from garboard.tunnel.server.grpc_frontend import GrpcFrontend
from garboard.tunnel.server.grpc_port import FRONT_LIMITS, GrpcPort
from garboard.tunnel.server.http_frontend import HttpFrontend
from garboard.tunnel.server.options import ServerOptions
from garboard.tunnel.server.proxy import Proxy
from garboard.tunnel.server.routing import Backends
from garboard.tunnel.server.shares import share_of
from garboard.tunnel.server.sharing import SharedListener, Sharing
from garboard.tunnel.server.tenants import Mode, Tenant
from garboard.tunnel.server.tokens import AgentRefused, RateLimit, TokenAuthenticator
from garboard.tunnel.tls import ListenerKeys, ListenerTls, TlsPolicy, handshake
from garboard.tunnel.web import cannot_listen
from garboard.tunnel.wire.flow import StallWatch
from garboard.tunnel.wire.sockets import BACKLOG

DEFAULT_DIAL_S: Final = 30.0  # as long as an API server waits
DEFAULT_QPS: Final = 50.0
DEFAULT_BURST: Final = 100


class ServedCluster:
    """Made by the server for every tenant; `listen` opens the port or socket for its API servers."""

    def __init__(
        self, tenant: Tenant, options: ServerOptions, identity: ServerIdentity, sharing: Sharing | None = None
    ) -> None:
        self.tenant = tenant
        self._identity = identity
        self._sharing = sharing
        self._workers = options.workers
        timeouts = TunnelTimeouts(dial_s=options.backend_dial_timeout_s or DEFAULT_DIAL_S)
        self.watch = StallWatch(options.stall_policy)
        backends = Backends(options.proxy_strategies, random.randrange)
        self.proxy = Proxy(
            backends,
            timeouts=timeouts,
            watch=self.watch,
            allowed=tenant.allowed,
            workers=options.workers,
            on_agents=self._agents_changed,
        )
        self.denials = Counter("reason")
        self.proxy.metrics.add({"agent_denials_total": ("Agents that were not let in, by reason.", self.denials)})
        self.keys = ListenerKeys(tenant.keys, options.tls)
        self.frontend_keys: ListenerKeys | None = None
        self.frontend_port = GrpcPort(
            "/ProxyService/Proxy",
            lambda link, call: GrpcFrontend(self.proxy, link, call),
            options.frontend_keepalive_s,
            self._frontend_objection,
            limits=FRONT_LIMITS,
        )
        self.server_port = 0
        self._policy = options.tls
        self._authenticator = _authenticator(tenant, options)
        self._reviews: set[asyncio.Task[None]] = set()
        self._listener: asyncio.Server | TlsListener | SharedListener | None = None

    @property
    def agents(self) -> int:
        """As many as the first strategy can choose from."""
        return self.proxy.backends.count(self.proxy.backends.strategies[0])

    def _agents_changed(self) -> None:
        if self._sharing is not None:
            self.choose_clients()
            self._sharing.on_agents()

    def choose_clients(self) -> None:
        """Accept API servers, or leave them to workers that have more agents."""
        if self._sharing is not None and isinstance(self._listener, TlsListener | SharedListener):
            self._listener.set_open(self._sharing.takes_clients(self.tenant.name, self.agents))

    def take_agent(self, link: AioLink, call: ServerCall) -> None:
        """Serve the Connect call of an agent; where tokens are required, once its token has been reviewed."""
        if self._authenticator is None:
            accept_agent(self.proxy, self._identity, link, call, certified_name(link))
            return
        review = link.loop.create_task(self._review(self._authenticator, link, call))
        self._reviews.add(review)
        review.add_done_callback(self._reviews.discard)

    def objection(self, peer: ssl.SSLObject) -> str:
        """Why a connection to the agent port is not let in."""
        reason = self.keys.objection(peer)
        if reason:
            self.denials.of("certificate").value += 1
        return reason

    async def listen(self) -> None:
        """Listen for API servers."""
        self._listener = await self._open_frontend()
        self.choose_clients()

    async def _open_frontend(self) -> asyncio.Server | TlsListener | SharedListener:
        frontend = self.tenant.frontend
        if frontend.uds_name:
            return self._share_socket(self._sharing) if self._sharing else await self._listen_on_socket()
        assert frontend.keys is not None
        policy = TlsPolicy(
            minimum=self._policy.minimum, ciphers=self._policy.ciphers, speaks_h2=frontend.mode is Mode.GRPC
        )
        keys = self.frontend_keys = ListenerKeys(frontend.keys, policy)
        tls = ListenerTls(lambda _name: keys, policy)
        tls.ask_for([keys])
        is_http = frontend.mode is Mode.HTTP_CONNECT
        accept = self._accept_secure_http if is_http else self.frontend_port.accept
        listener = TlsListener(accept, handshake(tls), leaves=FRONT_LEAVES, workers=self._workers)
        if self._sharing:
            listener.adopt(self._sharing.front(frontend))
        else:
            await listener.listen(frontend.bind_address, frontend.port)
        self.server_port = listener.port
        return listener

    def stop(self) -> None:
        """Take nothing new."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        for review in self._reviews:
            review.cancel()

    async def _review(self, authenticator: TokenAuthenticator, link: AioLink, call: ServerCall) -> None:
        try:
            account = await authenticator.check(call.metadata, host_of(link))
        except AgentRefused as refused:
            self.denials.of("token").value += 1
            refuse_agent(link, call, refused)
        else:
            if call.status is None:
                accept_agent(self.proxy, self._identity, link, call, account)

    def _accept_secure_http(self, slot: Slot) -> HttpFrontend:
        return SecureHttpFrontend(self.proxy, self._frontend_objection, slot)

    def _frontend_objection(self, peer: ssl.SSLObject | None) -> str:
        return self.frontend_keys.objection(peer) if self.frontend_keys is not None and peer is not None else ""

    def _accept_client(self) -> asyncio.BaseProtocol:
        is_http = self.tenant.frontend.mode is Mode.HTTP_CONNECT
        return HttpFrontend(self.proxy) if is_http else self.frontend_port.accept()

    def _share_socket(self, sharing: Sharing) -> SharedListener:
        return SharedListener(self._accept_client, sharing.front(self.tenant.frontend))

    async def _listen_on_socket(self) -> asyncio.Server:
        path = Path(self.tenant.frontend.uds_name)
        if path.exists() and not self.tenant.frontend.delete_existing_uds_file:
            raise cannot_listen(str(path), FileExistsError(17, "File exists"))
        mask = os.umask(0o007)
        try:
            loop = asyncio.get_running_loop()
            return await loop.create_unix_server(self._accept_client, str(path), backlog=BACKLOG)
        except OSError as error:
            raise cannot_listen(str(path), error) from error
        finally:
            os.umask(mask)


class SecureHttpFrontend(HttpFrontend):
    """A frontend whose client certificate is checked once more after the TLS handshake."""

    def __init__(self, proxy: Proxy, objection: Callable[[ssl.SSLObject | None], str], slot: Slot) -> None:
        super().__init__(proxy)
        self._slot = slot
        self._objection = objection
        self._is_refused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._slot.release()
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


def _authenticator(tenant: Tenant, options: ServerOptions) -> TokenAuthenticator | None:
    if tenant.token_rules is None:
        return None
    assert options.reviewer_for is not None, "tokens need a reviewer"
    workers = options.workers
    burst = share_of(options.review_burst or DEFAULT_BURST, workers)
    rate_limit = RateLimit((options.review_qps or DEFAULT_QPS) / workers, burst)
    return TokenAuthenticator(tenant.token_rules, options.reviewer_for(tenant.kubeconfig), rate_limit, workers=workers)
