"""What a proxy server can be told; names and defaults are those of the stock flags."""

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from garboard.errors import BadUsage
from garboard.tunnel.destinations import AllowList
from garboard.tunnel.flow import Patience
from garboard.tunnel.server.routing import Strategy


class Mode(StrEnum):
    GRPC = "grpc"
    HTTP_CONNECT = "http-connect"


@dataclass(frozen=True, slots=True)
class KeyPair:
    """Certificate and key files, and the authority whose clients are let in."""

    certificate: Path
    key: Path
    client_ca: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    server_id: str
    mode: Mode = Mode.GRPC
    uds_name: str = ""
    delete_existing_uds_file: bool = True
    server_bind_address: str = ""
    server_port: int = 8090
    server_keys: KeyPair | None = None
    agent_bind_address: str = ""
    agent_port: int = 8091
    cluster_keys: KeyPair | None = None
    health_bind_address: str = ""
    health_port: int = 8092
    admin_bind_address: str = "127.0.0.1"
    admin_port: int = 8095
    server_count: int = 1
    proxy_strategies: tuple[Strategy, ...] = (Strategy.DEFAULT,)
    keepalive_s: float = 3600.0
    frontend_keepalive_s: float = 3600.0
    graceful_shutdown_s: float = 0.0
    backend_dial_timeout_s: float = 0.0
    patience: Patience = field(default_factory=Patience)
    allowed: AllowList = field(default_factory=AllowList)  # what nodes may reach through this server

    def check(self) -> None:
        """Raise `BadUsage` with every rule that is broken."""
        problems = [text for text, is_broken in self._rules() if is_broken]
        if problems:
            raise BadUsage("; ".join(problems), hint="see `garboard tunnel server --help`")

    def _rules(self) -> tuple[tuple[str, bool], ...]:
        has_client_ca = self.server_keys is not None and self.server_keys.client_ca is not None
        return (
            ("--uds-name needs --server-port=0", bool(self.uds_name) and self.server_port != 0),
            ("--server-port=0 needs --uds-name", not self.uds_name and self.server_port == 0),
            ("--uds-name takes no --server-cert, --server-key or --server-ca-cert", bool(self.uds_name) and
             self.server_keys is not None),
            ("without --uds-name, --server-cert, --server-key and --server-ca-cert are needed", not self.uds_name and
             not has_client_ca),
            ("--cluster-cert and --cluster-key are needed", self.cluster_keys is None),
            ("--server-count must be at least 1", self.server_count < 1),
        )  # fmt: skip
