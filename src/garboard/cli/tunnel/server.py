"""`garboard tunnel server`."""

import asyncio
import os
from pathlib import Path
from typing import Any, Final

import click

from garboard.cli.tunnel.api_server import reviewer_for, server_lease_book
from garboard.cli.tunnel.daemon import Signals, new_id, run_daemon
from garboard.cli.tunnel.flags import Entry, Flag, GoCommand, Ignored, Kind
from garboard.errors import BadUsage
from garboard.host import Machine
from garboard.tunnel.destinations import AllowList
from garboard.tunnel.flow import MAX_PAYLOAD, Patience
from garboard.tunnel.leases import DEFAULT_LABELS, DEFAULT_NAMESPACE
from garboard.tunnel.server.options import KeyPair, Mode, ServerOptions
from garboard.tunnel.server.routing import parse_strategies
from garboard.tunnel.server.run import serve
from garboard.tunnel.server.tenants import TenantsSource
from garboard.tunnel.server.tokens import TokenRules
from garboard.tunnel.suites import parse_minimum, parse_suites
from garboard.tunnel.tls import TlsPolicy

FLAGS: Final[tuple[Entry, ...]] = (
    Flag("mode", Kind.TEXT, "grpc", "What API servers speak: grpc or http-connect."),
    Flag("uds-name", Kind.FILE, "", "Unix socket for API servers; needs --server-port=0."),
    Flag("delete-existing-uds-file", Kind.TRUTH, "true", "Remove what is left of an earlier socket first."),
    Flag("server-port", Kind.NUMBER, "8090", "Port for API servers; 0 with --uds-name."),
    Flag("server-bind-address", Kind.TEXT, "", "Address for API servers; empty is every one."),
    Flag("server-cert", Kind.FILE, "", "Certificate for API servers."),
    Flag("server-key", Kind.FILE, "", "Its key."),
    Flag("server-ca-cert", Kind.FILE, "", "Authority of the API servers' client certificates."),
    Flag("agent-port", Kind.NUMBER, "8091", "Port for agents."),
    Flag("agent-bind-address", Kind.TEXT, "", "Address for agents; empty is every one."),
    Flag("cluster-cert", Kind.FILE, "", "Certificate for agents."),
    Flag("cluster-key", Kind.FILE, "", "Its key."),
    Flag("cluster-ca-cert", Kind.FILE, "", "Authority of the agents' client certificates; without it anyone may join."),
    Flag("health-port", Kind.NUMBER, "8092", "Port of /healthz, /readyz and /metrics."),
    Flag("health-bind-address", Kind.TEXT, "", "Its address; empty is every one."),
    Flag("admin-port", Kind.NUMBER, "8095", "Port of /metrics for administrators."),
    Flag("admin-bind-address", Kind.TEXT, "127.0.0.1", "Its address."),
    Flag("keepalive-time", Kind.DURATION, "1h", "Ask an agent that is silent this long whether it lives."),
    Flag("frontend-keepalive-time", Kind.DURATION, "1h", "The same for API servers."),
    Flag("server-id", Kind.TEXT, "", "Name of this server among its like; $PROXY_SERVER_ID or a random one."),
    Flag("server-count", Kind.NUMBER, "1", "How many servers agents should look for."),
    Flag("proxy-strategies", Kind.TEXT, "default", "destHost, defaultRoute, default: how agents are chosen, in order."),
    Flag("graceful-shutdown-timeout", Kind.DURATION, "0s", "How long to wait for open connections when stopping."),
    Flag("backend-dial-timeout", Kind.DURATION, "0s", "How long an agent may take to answer a dial; 0 is 30 s."),
    Flag("xfr-channel-size", Kind.NUMBER, "128", "Packets of 32 KiB that may wait for each slow connection."),
    Flag("allowed-destination", Kind.REPEATED, "", "host:port or network/bits:port that nodes may reach."),
    Flag("agent-namespace", Kind.TEXT, "", "Namespace of the agents' service account; agents must show its token."),
    Flag("agent-service-account", Kind.TEXT, "", "Its name."),
    Flag("authentication-audience", Kind.TEXT, "", "Whom the tokens must have been made for."),
    Flag("kubeconfig", Kind.FILE, "", "Way to the API server for tokens and leases; empty is the pod's own."),
    Flag("kubeconfig-qps", Kind.DECIMAL, "0", "Token reviews a second; 0 is 50."),
    Flag("kubeconfig-burst", Kind.NUMBER, "0", "Token reviews at once; 0 is 100."),
    Flag("enable-lease-controller", Kind.TRUTH, "false", "Publish a lease, and clear away those of dead servers."),
    Flag("lease-namespace", Kind.TEXT, DEFAULT_NAMESPACE, "Where the leases are."),
    Flag("lease-label", Kind.TEXT, DEFAULT_LABELS, "Their labels: a comma list of name=value."),
    Flag("cipher-suites", Kind.LIST, "", "Suites of TLS 1.2, by Go's names; empty is OpenSSL's own choice."),
    Flag("tls-min-version", Kind.TEXT, "", "VersionTLS12 or VersionTLS13."),
    Flag("tenants", Kind.FILE, "", "Serve many clusters on one port for agents: who they are (docs/tunnel.md)."),
    Ignored("enable-profiling", "there is no Go profile to give; /metrics and `tunnel status` tell what goes on"),
    Ignored("enable-contention-profiling", "there is no Go profile to give"),
    Ignored("kube-api-content-type", "requests are JSON, which every API server takes"),
    Ignored("frontend-write-channel-size", "see --xfr-channel-size; newer than v0.36.0"),
    Ignored("feature-gates", "nothing is behind a gate here"),
    Ignored("warn-on-channel-limit", "without effect in the stock server too"),
)
EPILOG = (
    "Example: garboard tunnel server --uds-name=/run/konnectivity.sock --server-port=0 --cluster-cert=server.crt "
    "--cluster-key=server.key --cluster-ca-cert=ca.crt"
)


@click.command(cls=GoCommand, entries=FLAGS, epilog=EPILOG)
def server(**flags: Any) -> int:
    """Run a proxy server: API servers come in through a socket, agents dial in, connections go out through them."""
    options = options_of(flags)
    options.check()
    return run_daemon(lambda signals: _serve(options, signals), verbosity=flags["v"])


def options_of(flags: dict[str, Any]) -> ServerOptions:
    """The flags as what the server takes."""
    try:
        mode = Mode(flags["mode"])
    except ValueError:
        raise BadUsage(f"--mode={flags['mode']} is not a mode", hint="write grpc or http-connect") from None
    tenants_file = _tenants_file(flags["tenants"]) if flags["tenants"] else None
    as_they_are = (
        "delete_existing_uds_file", "server_bind_address", "server_port", "agent_bind_address", "agent_port",
        "health_bind_address", "health_port", "admin_bind_address", "admin_port", "server_count", "kubeconfig",
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
        patience=Patience(buffer_bytes=flags["xfr_channel_size"] * MAX_PAYLOAD),
        tls=TlsPolicy(minimum=parse_minimum(flags["tls_min_version"]), ciphers=parse_suites(flags["cipher_suites"])),
        token_rules=_token_rules(flags),
        reviewer_for=reviewer_for,
        review_qps=flags["kubeconfig_qps"],
        review_burst=flags["kubeconfig_burst"],
        lease_book=server_lease_book(flags["kubeconfig"], flags["lease_namespace"], flags["lease_label"])
        if flags["enable_lease_controller"]
        else None,
        tenants=tenants_file.load() if tenants_file else (),
        tenants_file=tenants_file,
    )


def _tenants_file(path: Path) -> TenantsSource:
    from garboard.tunnel.server.tenants_file import TenantsFile

    return TenantsFile(path, Machine().read_file)


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
    """Until a signal; a second one does not wait for open connections."""
    serving = asyncio.create_task(_serve_until(options, signals))
    insisting = asyncio.create_task(signals.second.wait())
    await asyncio.wait((serving, insisting), return_when=asyncio.FIRST_COMPLETED)
    insisting.cancel()
    if serving.done():
        serving.result()
        return 0
    return 1


async def _serve_until(options: ServerOptions, signals: Signals) -> None:
    async with serve(options):
        await signals.first.wait()
