"""What a deployment is made for: where the server is, what the node's agent stands in for, how both know each other."""

from dataclasses import dataclass
from enum import StrEnum
from ipaddress import IPv4Address, IPv6Address
from typing import Final

from garboard.tunnel.deploy import DEFAULT_IMAGE
from garboard.tunnel.deploy.link import DEFAULT_NAME
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
    agent_port: int = 8132
    health_port: int = 8134
    admin_port: int = 8133
    server_count: int = 1
    mode: Mode = Mode.GRPC
    authentication: Authentication = Authentication.CERTIFICATE
    image: str = DEFAULT_IMAGE
    pki_folder: str = "/etc/kubernetes/konnectivity"
    bind_address: IPv4Address | IPv6Address | None = None
    local_port: int = 6443
    api_server: str = "127.0.0.1:6443"  # as the server reaches it
    link: str = DEFAULT_NAME

    @property
    def socket(self) -> str:
        return f"{SOCKET_FOLDER}/konnectivity-server.socket"

    @property
    def api_url(self) -> str:
        """Where nodes and pods find the API server; only with a bind address."""
        assert self.bind_address is not None
        host = f"[{self.bind_address}]" if self.bind_address.version == 6 else str(self.bind_address)
        return f"https://{host}:{self.local_port}"

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

    def agent_flags(self) -> list[str]:
        """The command line of the agent, behind `garboard tunnel agent`."""
        flags = [
            f"--proxy-server-host={self.server_host}",
            f"--proxy-server-port={self.agent_port}",
            f"--ca-cert={self.pki_folder}/ca.crt",
            "--keepalive-time=1m",
        ]
        if self.authentication is Authentication.CERTIFICATE:
            flags += [f"--agent-cert={self.pki_folder}/agent.crt", f"--agent-key={self.pki_folder}/agent.key"]
        else:
            flags.append("--service-account-token-path=/var/run/secrets/tokens/konnectivity-agent-token")
        if self.bind_address:
            flags += [f"--bind-address={self.bind_address}", f"--target={self.local_port}:{self.api_server}"]
        return flags

    def link_flags(self) -> list[str]:
        """The command line that gives the node its address, behind `garboard tunnel link`."""
        return [f"--address={self.bind_address}", f"--name={self.link}"]
