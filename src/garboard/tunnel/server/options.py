"""The options of a proxy server; names and defaults are those of the stock flags."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from garboard.errors import BadUsage
from garboard.tunnel.destinations import AllowList
from garboard.tunnel.leases import LeaseStore
from garboard.tunnel.server.routing import Strategy
from garboard.tunnel.server.tenants import FrontendConfig, Mode, Tenant, TenantsSource
from garboard.tunnel.server.tokens import TokenReviewer, TokenRules
from garboard.tunnel.tls import KeyPair, TlsPolicy
from garboard.tunnel.wire.flow import StallPolicy

MOST_WORKERS: Final = 64


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
    workers: int = 1  # processes that share the ports and the quotas
    proxy_strategies: tuple[Strategy, ...] = (Strategy.DEFAULT,)
    keepalive_s: float = 3600.0
    frontend_keepalive_s: float = 3600.0
    graceful_shutdown_s: float = 0.0
    backend_dial_timeout_s: float = 0.0
    tls: TlsPolicy = field(default_factory=TlsPolicy)
    token_rules: TokenRules | None = None
    kubeconfig: Path | None = None
    reviewer_for: Callable[[Path | None], TokenReviewer] | None = field(default=None, repr=False)
    review_qps: float = 0.0
    review_burst: int = 0
    lease_store: LeaseStore | None = field(default=None, repr=False)
    tenants: tuple[Tenant, ...] = ()  # in place of the one cluster that the options above describe
    tenants_file: TenantsSource | None = field(default=None, repr=False)  # where they came from, and may change
    stall_policy: StallPolicy = field(default_factory=StallPolicy)
    allowed: AllowList = field(default_factory=AllowList)  # what nodes may reach through this server

    def check(self) -> None:
        """Raise `BadUsage` with every rule that is broken."""
        problems = [text for text, is_broken in self._rules() if is_broken]
        if problems:
            raise BadUsage("; ".join(problems), hint="see `garboard tunnel server --help`")

    def clusters(self) -> tuple[Tenant, ...]:
        """The tenants, or without any the one cluster of the flags."""
        if self.tenants:
            return self.tenants
        assert self.cluster_keys is not None
        frontend = FrontendConfig(
            mode=self.mode,
            uds_name=self.uds_name,
            delete_existing_uds_file=self.delete_existing_uds_file,
            bind_address=self.server_bind_address,
            port=self.server_port,
            keys=self.server_keys,
        )
        return (
            Tenant(
                name="",
                keys=self.cluster_keys,
                frontend=frontend,
                token_rules=self.token_rules,
                kubeconfig=self.kubeconfig,
                allowed=self.allowed,
            ),
        )

    def _rules(self) -> tuple[tuple[str, bool], ...]:
        if self.tenants:
            return self._tenant_rules()
        has_client_ca = self.server_keys is not None and self.server_keys.client_ca is not None
        return (
            ("--uds-name needs --server-port=0", bool(self.uds_name) and self.server_port != 0),
            ("--server-port=0 needs --uds-name", not self.uds_name and self.server_port == 0),
            ("--uds-name takes no --server-cert, --server-key or --server-ca-cert", bool(self.uds_name) and
             self.server_keys is not None),
            ("without --uds-name, --server-cert, --server-key and --server-ca-cert are needed", not self.uds_name and
             not has_client_ca),
            ("--cluster-cert and --cluster-key are needed", self.cluster_keys is None),
            *self._count_rules(),
            ("--cluster-ca-cert and --agent-namespace exclude each other: agents show a certificate or a token",
             self.token_rules is not None and self.cluster_keys is not None and bool(self.cluster_keys.client_ca)),
        )  # fmt: skip

    def _tenant_rules(self) -> tuple[tuple[str, bool], ...]:
        return (
            ("--tenants takes no --cluster-cert, --cluster-key or --cluster-ca-cert: its file names them",
             self.cluster_keys is not None),
            ("--tenants takes no --uds-name, --server-cert, --server-key or --server-ca-cert: its file names sockets",
             bool(self.uds_name) or self.server_keys is not None),
            ("--tenants takes no --allowed-destination: its file names them", not self.allowed.is_empty),
            ("--tenants takes no --agent-namespace: its file names whom to trust", self.token_rules is not None),
            *self._count_rules(),
        )  # fmt: skip

    def _count_rules(self) -> tuple[tuple[str, bool], ...]:
        return (
            ("--server-count must be at least 1", self.server_count < 1),
            (f"--workers takes 1 to {MOST_WORKERS}", not 1 <= self.workers <= MOST_WORKERS),
        )
