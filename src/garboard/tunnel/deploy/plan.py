"""A deployment of the tunnel: where the server is, which address agents listen on, how agents authenticate."""

from dataclasses import dataclass
from enum import StrEnum
from ipaddress import IPv4Address, IPv6Address
from typing import Final

from garboard.manifests.tunnel_agent import TunnelAgent
from garboard.model.image import GARBOARD_IMAGE
from garboard.model.tunnel import (
    DEFAULT_AGENT_PORT,
    DEFAULT_API_SERVER,
    DEFAULT_LINK,
    TUNNEL_PKI_DIR,
)
from garboard.tunnel.server.tenants import Mode

SOCKET_FOLDER: Final = "/etc/kubernetes/konnectivity-server"
EGRESS_FILE: Final = "/etc/kubernetes/konnectivity-server/egress-selector.yaml"
AUDIENCE: Final = "system:konnectivity-server"


class Authentication(StrEnum):
    """How agents show who they are. Static pods have no tokens: they, and units of systemd, need certificates."""

    CERTIFICATE = "certificate"
    TOKEN = "token"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """One cluster's tunnel. With a `bind_address` nodes reach the API server through it, too."""

    server_host: str
    agent_port: int = DEFAULT_AGENT_PORT
    health_port: int = 8134
    admin_port: int = 8133
    server_count: int = 1
    mode: Mode = Mode.GRPC
    authentication: Authentication = Authentication.CERTIFICATE
    image: str = GARBOARD_IMAGE
    pki_folder: str = TUNNEL_PKI_DIR
    bind_address: IPv4Address | IPv6Address | None = None
    local_port: int = 6443
    api_server: str = DEFAULT_API_SERVER  # as the server reaches it
    link: str = DEFAULT_LINK

    @property
    def socket(self) -> str:
        return f"{SOCKET_FOLDER}/konnectivity-server.socket"

    @property
    def agent(self) -> TunnelAgent:
        """The agent of each node."""
        return TunnelAgent(
            server_host=self.server_host,
            server_port=self.agent_port,
            has_certificate=self.authentication is Authentication.CERTIFICATE,
            image=self.image,
            pki_folder=self.pki_folder,
            bind_address=self.bind_address,
            local_port=self.local_port,
            api_server=self.api_server,
            link=self.link,
        )

    def server_flags(self) -> list[str]:
        """The command line of the server, behind `garboard tunnel server`."""
        flags = [
            f"--mode={self.mode}",
            f"--uds-name={self.socket}",
            "--server-port=0",
            f"--agent-port={self.agent_port}",
            f"--health-port={self.health_port}",
            f"--admin-port={self.admin_port}",
            f"--cluster-cert={self.pki_folder}/server.crt",
            f"--cluster-key={self.pki_folder}/server.key",
            "--keepalive-time=1m",
            "--graceful-shutdown-timeout=15s",
            f"--server-count={self.server_count}",
        ]
        if self.authentication is Authentication.CERTIFICATE:
            flags.append(f"--cluster-ca-cert={self.pki_folder}/ca.crt")
        else:
            flags += ["--agent-namespace=kube-system", "--agent-service-account=konnectivity-agent",
                      f"--authentication-audience={AUDIENCE}",
                      "--kubeconfig=/etc/kubernetes/konnectivity-server.conf"]  # fmt: skip
        return flags + ([f"--allowed-destination={self.api_server}"] if self.bind_address else [])
