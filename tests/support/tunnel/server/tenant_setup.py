"""Two tenants behind one port, their agents, and a client that tries any name."""

import contextlib
import socket
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

from garboard.tunnel.agent.options import AgentOptions
from garboard.tunnel.agent.run import run_agent
from garboard.tunnel.server.options import ServerOptions
from garboard.tunnel.server.routing import AgentBackend
from garboard.tunnel.server.run import ProxyServer
from garboard.tunnel.server.tenants import FrontendConfig, Tenant
from garboard.tunnel.tls import KeyPair, client_context
from tests.support.tunnel.ends import agent_options
from tools.harness.certificates import Certificates


@dataclass(frozen=True)
class TenantSetup:
    """Two tenants, each with an authority of its own; their servers' certificates are good for localhost."""

    a: Certificates
    b: Certificates
    folder: Path

    def tenant(self, name: str, keys: Certificates, **changes: object) -> Tenant:
        tenant = Tenant(
            name=name,
            keys=KeyPair(keys.server, keys.server_key, keys.ca),
            frontend=FrontendConfig(uds_name=self.front(name)),
            server_names=frozenset({f"{name}.test"}),
        )
        return replace(tenant, **changes)  # type: ignore[arg-type]

    def front(self, name: str) -> str:
        return str(self.folder / f"{name}.sock")

    def options(self, *tenants: Tenant) -> ServerOptions:
        return ServerOptions(
            server_id="s1", server_port=0, agent_bind_address="127.0.0.1", agent_port=0, admin_port=0, health_port=0,
            health_bind_address="127.0.0.1", tenants=tenants or (self.tenant("a", self.a), self.tenant("b", self.b)),
        )  # fmt: skip

    def agent(self, server: ProxyServer, name: str, shows: Certificates, trusts: Certificates) -> AgentOptions:
        return replace(
            agent_options(trusts, server.agent_port, agent_id=f"agent-of-{name}"),
            agent_cert=shows.client,
            agent_key=shows.client_key,
            tls_server_name=name,
        )


@contextlib.asynccontextmanager
async def agents(*options: AgentOptions) -> AsyncIterator[None]:
    async with contextlib.AsyncExitStack() as stack:
        for each in options:
            await stack.enter_async_context(run_agent(each))
        yield


def joined(server: ProxyServer) -> list[list[str]]:
    """The agents of each cluster."""
    found = (list(cluster.proxy.streams) for cluster in server.clusters)
    return [sorted(each.agent_id for each in backends if isinstance(each, AgentBackend)) for backends in found]


def handshake(
    port: int, keys: Certificates, names: tuple[str | None, ...], version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3
) -> tuple[bool, bytes | str]:
    """Connect under each name with the session of the one before: was the last resumed, and what did the server say.

    The client believes the server everything, so that only the server can refuse.
    """
    context = client_context(keys.ca, keys.client, keys.client_key)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.maximum_version = version
    session: ssl.SSLSession | None = None
    for name in names:
        with socket.create_connection(("127.0.0.1", port)) as plain:
            try:
                with context.wrap_socket(plain, server_hostname=name, session=session) as secure:
                    said: bytes | str = secure.read(9)  # a server that lets us in sends its settings
                    session, is_resumed = secure.session, bool(secure.session_reused)
            except OSError as error:
                said, is_resumed = str(error), False
    return is_resumed, said


def is_let_in(said: bytes | str) -> bool:
    return isinstance(said, bytes) and said[3:4] == b"\x04"  # SETTINGS
