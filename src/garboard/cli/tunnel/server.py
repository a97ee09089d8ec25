"""`garboard tunnel server`."""

import asyncio
import os
from pathlib import Path
from typing import Any, Final

import click

from garboard.cli.tunnel.daemon import Signals, new_id, run_daemon
from garboard.cli.tunnel.flags import Entry, Flag, GoCommand, Ignored, Kind, Unsupported
from garboard.errors import BadUsage
from garboard.tunnel.destinations import AllowList
from garboard.tunnel.flow import MAX_PAYLOAD, Patience
from garboard.tunnel.server.options import KeyPair, Mode, ServerOptions
from garboard.tunnel.server.routing import parse_strategies
from garboard.tunnel.server.run import serve

_TOKENS = "agents are told apart by certificates only (--cluster-ca-cert); TokenReview is not there yet"
_LEASES = "servers are counted with --server-count only; leases are not there yet"
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
    Unsupported("agent-namespace", ("",), _TOKENS),
    Unsupported("agent-service-account", ("",), _TOKENS),
    Unsupported("authentication-audience", ("",), _TOKENS),
    Unsupported("enable-lease-controller", ("false",), _LEASES),
    Unsupported("cipher-suites", ("", "[]"), "the suites are those of OpenSSL's defaults"),
    Unsupported("tls-min-version", ("", "VersionTLS12"), "TLS 1.2 is the least, which cannot be changed yet"),
    Unsupported("enable-profiling", ("false",), "there is no profiler to ask"),
    Unsupported("enable-contention-profiling", ("false",), "there is no profiler to ask"),
    Ignored("kubeconfig", "used for tokens and leases only"),
    Ignored("kubeconfig-qps", "used for tokens and leases only"),
    Ignored("kubeconfig-burst", "used for tokens and leases only"),
    Ignored("kube-api-content-type", "used for tokens and leases only"),
    Ignored("lease-namespace", "used with --enable-lease-controller only"),
    Ignored("lease-label", "used with --enable-lease-controller only"),
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
    as_they_are = (
        "delete_existing_uds_file", "server_bind_address", "server_port", "agent_bind_address", "agent_port",
        "health_bind_address", "health_port", "admin_bind_address", "admin_port", "server_count",
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
    )


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
