"""`garboard tunnel server`."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from garboard.cli.flags import DECIMAL, FILE, NUMBER, SECONDS, TEXT, TRUTH, WORDS, ignored, repeated, stock
from garboard.cli.tunnel.api_server import reviewer_for, server_lease_store
from garboard.cli.tunnel.daemon import KLOG, MIB, SEAT, GoCommand, Signals, new_id, run_daemon, until_signalled
from garboard.errors import BadUsage
from garboard.host import Machine
from garboard.lazy import lazy_module
from garboard.tunnel.destinations import AllowList
from garboard.tunnel.leases import DEFAULT_LABELS, DEFAULT_NAMESPACE
from garboard.tunnel.server.options import ServerOptions
from garboard.tunnel.server.routing import parse_strategies
from garboard.tunnel.server.run import serve
from garboard.tunnel.server.tenants import Mode, Tenant, TenantsSource
from garboard.tunnel.server.tokens import TokenRules
from garboard.tunnel.tls import KeyPair, TlsPolicy, parse_minimum, parse_suites
from garboard.tunnel.wire.flow import MAX_PAYLOAD, StallPolicy

if TYPE_CHECKING:
    from garboard.cli.tunnel import workers
    from garboard.tunnel.server import tenants_file
else:  # a server in one process does without, and without --tenants nothing reads YAML
    workers = lazy_module("garboard.cli.tunnel.workers")
    tenants_file = lazy_module("garboard.tunnel.server.tenants_file")

FLAGS: Final = (
    stock("mode", TEXT, "grpc", "What API servers speak: grpc or http-connect."),
    stock("uds-name", FILE, "", "Unix socket for API servers; needs --server-port=0."),
    stock("delete-existing-uds-file", TRUTH, "true", "Remove what is left of an earlier socket first."),
    stock("server-port", NUMBER, "8090", "Port for API servers; 0 with --uds-name."),
    stock("server-bind-address", TEXT, "", "Address for API servers; empty is every one."),
    stock("server-cert", FILE, "", "Certificate for API servers."),
    stock("server-key", FILE, "", "Its key."),
    stock("server-ca-cert", FILE, "", "Authority of the API servers' client certificates."),
    stock("agent-port", NUMBER, "8091", "Port for agents."),
    stock("agent-bind-address", TEXT, "", "Address for agents; empty is every one."),
    stock("cluster-cert", FILE, "", "Certificate for agents."),
    stock("cluster-key", FILE, "", "Its key."),
    stock("cluster-ca-cert", FILE, "", "Authority of the agents' client certificates; without it anyone may join."),
    stock("health-port", NUMBER, "8092", "Port of /healthz, /readyz and /metrics."),
    stock("health-bind-address", TEXT, "", "Its address; empty is every one."),
    stock("admin-port", NUMBER, "8095", "Port of /metrics for administrators."),
    stock("admin-bind-address", TEXT, "127.0.0.1", "Its address."),
    stock("keepalive-time", SECONDS, "1h", "Ask an agent that is silent this long whether it lives."),
    stock("frontend-keepalive-time", SECONDS, "1h", "The same for API servers."),
    stock("server-id", TEXT, "", "Name of this server among its like; $PROXY_SERVER_ID or a random one."),
    stock("server-count", NUMBER, "1", "How many servers agents should look for."),
    stock("workers", NUMBER, "1", "Processes that share the ports, each a server of its own to the agents."),
    stock("proxy-strategies", TEXT, "default", "destHost, defaultRoute, default: how agents are chosen, in order."),
    stock("graceful-shutdown-timeout", SECONDS, "0s", "How long to wait for open connections when stopping."),
    stock("backend-dial-timeout", SECONDS, "0s", "How long an agent may take to answer a dial; 0 is 30 s."),
    stock("xfr-channel-size", NUMBER, "128", "Packets of 32 KiB that may wait for each slow connection."),
    stock("buffer-limit", NUMBER, "256", "MiB that may wait for slow readers in all; beyond, stalled ones are cut."),
    repeated("allowed-destination", "host:port or network/bits:port that nodes may reach."),
    stock("agent-namespace", TEXT, "", "Namespace of the agents' service account; agents must show its token."),
    stock("agent-service-account", TEXT, "", "Its name."),
    stock("authentication-audience", TEXT, "", "Whom the tokens must have been made for."),
    stock("kubeconfig", FILE, "", "Way to the API server for tokens and leases; empty is the pod's own."),
    stock("kubeconfig-qps", DECIMAL, "0", "Token reviews a second; 0 is 50."),
    stock("kubeconfig-burst", NUMBER, "0", "Token reviews at once; 0 is 100."),
    stock("enable-lease-controller", TRUTH, "false", "Publish a lease, and clear away those of dead servers."),
    stock("lease-namespace", TEXT, DEFAULT_NAMESPACE, "Where the leases are."),
    stock("lease-label", TEXT, DEFAULT_LABELS, "Their labels: a comma list of name=value."),
    stock("cipher-suites", WORDS, "", "Suites of TLS 1.2, by Go's names; empty is OpenSSL's own choice."),
    stock("tls-min-version", TEXT, "", "VersionTLS12 or VersionTLS13."),
    stock("tenants", FILE, "", "Serve many clusters on one port for agents: who they are (docs/tunnel-tenancy.md)."),
    ignored("enable-profiling", "there is no Go profile to give; /metrics and `tunnel status` tell what goes on"),
    ignored("enable-contention-profiling", "there is no Go profile to give"),
    ignored("kube-api-content-type", "requests are JSON, which every API server takes"),
    ignored("frontend-write-channel-size", "see --xfr-channel-size; newer than v0.36.0"),
    ignored("feature-gates", "nothing is behind a gate here"),
    ignored("warn-on-channel-limit", "without effect in the stock server too"),
)
EPILOG = (
    "Example: garboard tunnel server --uds-name=/run/konnectivity.sock --server-port=0 --cluster-cert=server.crt "
    "--cluster-key=server.key --cluster-ca-cert=ca.crt"
)


@click.command(cls=GoCommand, params=[*FLAGS, *KLOG], epilog=EPILOG)
def server(**flags: Any) -> int:
    """Run a proxy server: API servers come in through a socket, agents dial in, connections go out through them."""
    seat = os.environ.pop(SEAT, None)
    if seat is not None:
        return workers.run_worker(seat, lambda data: options_of(flags, data), verbosity=flags["v"])
    options = options_of(flags)
    options.check()
    if options.workers > 1:
        return workers.run_supervisor(options, verbosity=flags["v"])
    return run_daemon(lambda signals: _serve(options, signals), verbosity=flags["v"])


def options_of(flags: dict[str, Any], tenants_data: bytes | None = None) -> ServerOptions:
    """The flags as what the server takes; a worker is given the file of tenants, and does not watch it."""
    try:
        mode = Mode(flags["mode"])
    except ValueError:
        raise BadUsage(f"--mode={flags['mode']} is not a mode", hint="write grpc or http-connect") from None
    tenants = _tenants_file(flags["tenants"]) if flags["tenants"] else None
    as_they_are = (
        "delete_existing_uds_file", "server_bind_address", "server_port", "agent_bind_address", "agent_port",
        "health_bind_address", "health_port", "admin_bind_address", "admin_port", "server_count", "kubeconfig",
        "workers",
    )  # fmt: skip
    return ServerOptions(
        **{name: flags[name] for name in as_they_are},
        mode=mode,
        uds_name=str(flags["uds_name"] or ""),
        server_id=flags["server_id"] or os.environ.get("PROXY_SERVER_ID") or new_id(),
        server_keys=_keys(flags["server_cert"], flags["server_key"], flags["server_ca_cert"], "server"),
        cluster_keys=_keys(flags["cluster_cert"], flags["cluster_key"], flags["cluster_ca_cert"], "cluster"),
        proxy_strategies=parse_strategies(flags["proxy_strategies"]),
        keepalive_s=flags["keepalive_time"],
        frontend_keepalive_s=flags["frontend_keepalive_time"],
        graceful_shutdown_s=flags["graceful_shutdown_timeout"],
        backend_dial_timeout_s=flags["backend_dial_timeout"],
        allowed=AllowList.parse(flags["allowed_destination"]),
        stall_policy=StallPolicy(
            buffer_bytes=flags["xfr_channel_size"] * MAX_PAYLOAD, most_bytes=flags["buffer_limit"] * MIB
        ),
        tls=TlsPolicy(minimum=parse_minimum(flags["tls_min_version"]), ciphers=parse_suites(flags["cipher_suites"])),
        token_rules=_token_rules(flags),
        reviewer_for=reviewer_for,
        review_qps=flags["kubeconfig_qps"],
        review_burst=flags["kubeconfig_burst"],
        lease_store=server_lease_store(flags["kubeconfig"], flags["lease_namespace"], flags["lease_label"])
        if flags["enable_lease_controller"]
        else None,
        tenants=_tenants(tenants, tenants_data),
        tenants_file=tenants if tenants_data is None else None,
    )


def _tenants_file(path: Path) -> TenantsSource:
    return tenants_file.TenantsFile(path, Machine().read_file)


def _tenants(source: TenantsSource | None, data: bytes | None) -> tuple[Tenant, ...]:
    if source is None:
        return ()
    return source.load() if data is None else source.parse(data)


def _token_rules(flags: dict[str, Any]) -> TokenRules | None:
    names = ("agent_namespace", "agent_service_account", "authentication_audience")
    given = [flags[name] for name in names]
    if not any(given):
        return None
    if not all(given):
        together = ", ".join(f"--{name.replace('_', '-')}" for name in names)
        raise BadUsage(f"{together} go together", hint="give all three")
    return TokenRules(*given)


def _keys(certificate: Path | None, key: Path | None, ca: Path | None, name: str) -> KeyPair | None:
    if certificate is None and key is None and ca is None:
        return None
    if certificate is None or key is None:
        raise BadUsage(f"--{name}-cert and --{name}-key go together", hint="give both")
    return KeyPair(certificate, key, ca)


async def _serve(options: ServerOptions, signals: Signals) -> int:
    return await until_signalled(serve(options), signals)
