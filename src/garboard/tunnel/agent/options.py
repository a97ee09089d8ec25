"""The options of an agent; names and defaults are those of the stock flags."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from garboard.errors import BadUsage, InvalidValue
from garboard.tunnel.agent.server_count import CountSource
from garboard.tunnel.destinations import NodeTarget
from garboard.tunnel.identifiers import Identifiers
from garboard.tunnel.leases import LeaseStore
from garboard.tunnel.wire.flow import StallPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOptions:
    agent_id: str
    agent_identifiers: str = ""
    proxy_server_host: str = "127.0.0.1"
    proxy_server_port: int = 8091
    tls_server_name: str = ""  # when the servers' certificate, or their choice of a tenant, goes by another name
    ca_cert: Path | None = None
    agent_cert: Path | None = None
    agent_key: Path | None = None
    alpn_proto: tuple[str, ...] = ()
    read_token: Callable[[], str] | None = field(default=None, repr=False)
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)  # for HTTPS_PROXY and NO_PROXY
    health_server_host: str = ""
    health_server_port: int = 8093
    admin_bind_address: str = "127.0.0.1"
    admin_server_port: int = 8094
    sync_interval_s: float = 1.0
    sync_interval_cap_s: float = 10.0
    sync_forever: bool = False
    server_count_source: CountSource = CountSource.DEFAULT
    lease_store: LeaseStore | None = field(default=None, repr=False)
    keepalive_s: float = 3600.0
    drain_timeout_s: float = 0.0
    stall_policy: StallPolicy = field(default_factory=StallPolicy)
    targets: tuple[NodeTarget, ...] = ()
    bind_address: str = ""

    @property
    def addresses(self) -> tuple[tuple[str, int], ...]:
        """Where the servers are: one address for all of them, or one for each."""
        return tuple(_address(text, self.proxy_server_port) for text in self.proxy_server_host.split(","))

    def check(self) -> None:
        """Raise `BadUsage` with every rule that is broken, `InvalidValue` for bad identifiers."""
        Identifiers.parse(self.agent_identifiers, strict=True)
        problems = [text for text, is_broken in self._rules() if is_broken]
        if problems:
            raise BadUsage("; ".join(problems), hint="see `garboard tunnel agent --help`")

    def _rules(self) -> tuple[tuple[str, bool], ...]:
        return (
            ("--agent-cert and --agent-key go together", (self.agent_cert is None) != (self.agent_key is None)),
            ("--proxy-server-port must be above 0", self.proxy_server_port <= 0),
            ("--sync-interval must not be above --sync-interval-cap", self.sync_interval_s > self.sync_interval_cap_s),
            ("--ca-cert is needed", self.ca_cert is None),
            ("--agent-id takes printable ASCII", not self.agent_id.isascii() or not self.agent_id.isprintable()),
            ("--agent-id must not be empty", not self.agent_id),
            ("--target needs --bind-address", bool(self.targets) and not self.bind_address),
            ("--bind-address needs --target", bool(self.bind_address) and not self.targets),
            ("every --target needs a port of its own", len({each.local_port for each in self.targets}) <
             len(self.targets)),
            ("--proxy-server-host names a server twice", len(set(self.addresses)) < len(self.addresses)),
        )  # fmt: skip


def _address(text: str, port: int) -> tuple[str, int]:
    """`host`, `host:port` or `[address]:port`; an IPv6 address without brackets has no port."""
    host, colon, own_port = text.strip().rpartition(":")
    if not colon or (":" in host and not host.startswith("[")):
        host, own_port = text.strip(), str(port)
    if not host or not own_port.isascii() or not own_port.isdigit() or not 0 < int(own_port) < 65536:
        raise InvalidValue(f"{text!r} is not the address of a proxy server", hint="write host or host:port")
    return host.removeprefix("[").removesuffix("]"), int(own_port)
