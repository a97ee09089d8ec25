"""The tenants of a server: one cluster, or with `--tenants` many behind one port, told apart by server name."""

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from garboard.tunnel.destinations import AllowList
from garboard.tunnel.server.tokens import TokenRules
from garboard.tunnel.tls import KeyPair


class Mode(StrEnum):
    GRPC = "grpc"
    HTTP_CONNECT = "http-connect"


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontendConfig:
    """Where the API servers of a cluster connect: a unix socket, or a port with client certificates."""

    mode: Mode = Mode.GRPC
    uds_name: str = ""
    delete_existing_uds_file: bool = True
    bind_address: str = ""
    port: int = 0
    keys: KeyPair | None = None

    @property
    def place(self) -> str:
        """Where it listens, which no two front ends of a server have in common."""
        return self.uds_name or f"{self.bind_address}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """One cluster: what its agents see and must show, where its API servers connect, what its agents may reach."""

    name: str
    keys: KeyPair
    frontend: FrontendConfig
    server_names: frozenset[str] = frozenset()  # none: whatever agents ask for
    token_rules: TokenRules | None = None
    kubeconfig: Path | None = None
    allowed: AllowList = field(default_factory=AllowList)


class TenantsSource(Protocol):
    """Where tenants come from, and may change."""

    @property
    def path(self) -> Path: ...

    def read(self) -> bytes: ...

    def parse(self, data: bytes) -> tuple[Tenant, ...]: ...

    def load(self) -> tuple[Tenant, ...]: ...


def canonical_name(name: str) -> str:
    """A server name as it is compared: small letters, no dot at the end."""
    return name.lower().removesuffix(".")
