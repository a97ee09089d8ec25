"""`garboard tunnel agent`."""

import asyncio
import contextlib
import logging
import os
from pathlib import Path
from typing import Any, Final

import click

from garboard.cli.tunnel.api_server import agent_lease_book
from garboard.cli.tunnel.daemon import Signals, new_id, run_daemon
from garboard.cli.tunnel.flags import Entry, Flag, GoCommand, Ignored, Kind
from garboard.errors import BadUsage
from garboard.host import Machine
from garboard.tunnel.agent.options import AgentOptions
from garboard.tunnel.agent.run import run_agent
from garboard.tunnel.agent.server_count import CountSource
from garboard.tunnel.destinations import Target
from garboard.tunnel.flow import MAX_PAYLOAD, Patience
from garboard.tunnel.leases import DEFAULT_LABELS, DEFAULT_NAMESPACE

FLAGS: Final[tuple[Entry, ...]] = (
    Flag("proxy-server-host", Kind.TEXT, "127.0.0.1", "Address of the servers, or one for each (a,b:8091)."),
    Flag("proxy-server-port", Kind.NUMBER, "8091", "Their port for agents."),
    Flag("ca-cert", Kind.FILE, "", "Authority of the servers' certificates."),
    Flag("agent-cert", Kind.FILE, "", "Client certificate of this agent."),
    Flag("agent-key", Kind.FILE, "", "Its key."),
    Flag("service-account-token-path", Kind.FILE, "", "Token to show to the servers; read at every connect."),
    Flag("alpn-proto", Kind.LIST, "", "More ALPN protocols to offer, for load balancers that choose by them."),
    Flag("agent-id", Kind.TEXT, "", "Name of this agent; $PROXY_AGENT_ID or a random one."),
    Flag("agent-identifiers", Kind.TEXT, "", "Where this agent leads: host=a&ipv4=10.0.0.1&default-route=true."),
    Flag("health-server-host", Kind.TEXT, "", "Address of /healthz, /readyz and /metrics; empty is every one."),
    Flag("health-server-port", Kind.NUMBER, "8093", "Its port."),
    Flag("admin-bind-address", Kind.TEXT, "127.0.0.1", "Address for administrators."),
    Flag("admin-server-port", Kind.NUMBER, "8094", "Its port."),
    Flag("sync-interval", Kind.DURATION, "1s", "How long to wait before looking for a missing server again."),
    Flag("sync-interval-cap", Kind.DURATION, "10s", "The longest wait when attempts keep failing."),
    Flag("sync-forever", Kind.TRUTH, "false", "Look for more servers than were announced."),
    Flag("keepalive-time", Kind.DURATION, "1h", "Ask a server that is silent this long whether it lives."),
    Flag("xfr-channel-size", Kind.NUMBER, "150", "Packets of 32 KiB that may wait for each slow connection."),
    Flag("drain-timeout", Kind.DURATION, "0s", "Exit so long after the first signal; 0 serves until the second."),
    Flag("target", Kind.REPEATED, "", "local_port:host:port: a port of the node that leads to a destination."),
    Flag("bind-address", Kind.TEXT, "", "Where the ports of --target listen."),
    Flag("tls-server-name", Kind.TEXT, "", "Name to ask servers for, where it is not the address."),
    Flag("count-server-leases", Kind.TRUTH, "false", "Count the servers' leases instead of believing what they say."),
    Flag("server-count-source", Kind.TEXT, "default", "default, or max: the larger of leases and what servers say."),
    Flag("lease-namespace", Kind.TEXT, DEFAULT_NAMESPACE, "Where the leases are."),
    Flag("lease-label-selector", Kind.TEXT, "", f"Selector of the leases; empty is {DEFAULT_LABELS}."),
    Flag("lease-label", Kind.TEXT, "", "The same, by its older name."),
    Flag("kubeconfig", Kind.FILE, "", "Way to the API server for leases; empty is the pod's own."),
    Ignored("enable-profiling", "there is no Go profile to give; /metrics and `tunnel status` tell what goes on"),
    Ignored("enable-contention-profiling", "there is no Go profile to give"),
    Ignored("kube-api-content-type", "requests are JSON, which every API server takes"),
    Ignored("feature-gates", "nothing is behind a gate here"),
    Ignored("probe-interval", "a lost server is noticed at once"),
    Ignored("warn-on-channel-limit", "a full buffer holds its source back; see stalled_connections_total"),
)
EPILOG = (
    "Example: garboard tunnel agent --proxy-server-host=10.0.0.1 --ca-cert=ca.crt --agent-cert=a.crt --agent-key=a.key"
)

log = logging.getLogger("garboard.tunnel")


@click.command(cls=GoCommand, entries=FLAGS, epilog=EPILOG)
def agent(**flags: Any) -> int:
    """Run an agent: it connects to every proxy server and dials what they ask for."""
    options = options_of(flags)
    options.check()
    return run_daemon(lambda signals: _run(options, signals), verbosity=flags["v"])


def options_of(flags: dict[str, Any]) -> AgentOptions:
    """The flags as what the agent takes."""
    as_they_are = (
        "proxy_server_host", "proxy_server_port", "ca_cert", "agent_cert", "agent_key", "alpn_proto",
        "agent_identifiers", "health_server_host", "health_server_port", "admin_bind_address", "admin_server_port",
        "sync_forever", "tls_server_name",
    )  # fmt: skip
    selector = flags["lease_label_selector"] or flags["lease_label"] or DEFAULT_LABELS
    token: Path | None = flags["service_account_token_path"]
    return AgentOptions(
        **{name: flags[name] for name in as_they_are},
        agent_id=flags["agent_id"] or os.environ.get("PROXY_AGENT_ID") or new_id(),
        read_token=(lambda: Machine().read_file(token).decode()) if token else None,
        sync_interval_s=flags["sync_interval"],
        sync_interval_cap_s=flags["sync_interval_cap"],
        server_count_source=_count_source(flags["server_count_source"]),
        lease_book=agent_lease_book(flags["kubeconfig"], flags["lease_namespace"], selector)
        if flags["count_server_leases"]
        else None,
        keepalive_s=flags["keepalive_time"],
        drain_timeout_s=flags["drain_timeout"],
        targets=tuple(Target.parse(text) for text in flags["target"]),
        bind_address=flags["bind_address"],
        patience=Patience(buffer_bytes=flags["xfr_channel_size"] * MAX_PAYLOAD),
    )


def _count_source(text: str) -> CountSource:
    try:
        return CountSource(text or "default")
    except ValueError:
        raise BadUsage(f"--server-count-source={text} is not known", hint="write default or max") from None


async def _run(options: AgentOptions, signals: Signals) -> int:
    """Serve, drain at the first signal, and stop at the second or when the time for draining is over."""
    async with run_agent(options) as running:
        await signals.first.wait()
        log.info("agent.draining open_connections=%d", running.open_connections)
        running.pool.drain()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(options.drain_timeout_s or None):
                await signals.second.wait()
        log.info("agent.stopped cut_connections=%d", running.open_connections)
    return 0
