"""`garboard tunnel agent`."""

import asyncio
import contextlib
import logging
import os
from pathlib import Path
from typing import Any, Final

import click

from garboard.cli.flags import FILE, NUMBER, SECONDS, TEXT, TRUTH, WORDS, ignored, repeated, stock
from garboard.cli.tunnel.api_server import agent_lease_store
from garboard.cli.tunnel.daemon import KLOG, MIB, GoCommand, Signals, new_id, run_daemon
from garboard.errors import BadUsage
from garboard.host import Machine
from garboard.tunnel.agent.options import AgentOptions
from garboard.tunnel.agent.run import run_agent
from garboard.tunnel.agent.server_count import CountSource
from garboard.tunnel.destinations import NodeTarget
from garboard.tunnel.leases import DEFAULT_LABELS, DEFAULT_NAMESPACE
from garboard.tunnel.wire.flow import MAX_PAYLOAD, StallPolicy

FLAGS: Final = (
    stock("proxy-server-host", TEXT, "127.0.0.1", "Address of the servers, or one for each (a,b:8091)."),
    stock("proxy-server-port", NUMBER, "8091", "Their port for agents."),
    stock("ca-cert", FILE, "", "Authority of the servers' certificates."),
    stock("agent-cert", FILE, "", "Client certificate of this agent."),
    stock("agent-key", FILE, "", "Its key."),
    stock("service-account-token-path", FILE, "", "Token to show to the servers; read at every connect."),
    stock("alpn-proto", WORDS, "", "More ALPN protocols to offer, for load balancers that choose by them."),
    stock("agent-id", TEXT, "", "Name of this agent; $PROXY_AGENT_ID or a random one."),
    stock("agent-identifiers", TEXT, "", "Where this agent leads: host=a&ipv4=10.0.0.1&default-route=true."),
    stock("health-server-host", TEXT, "", "Address of /healthz, /readyz and /metrics; empty is every one."),
    stock("health-server-port", NUMBER, "8093", "Its port."),
    stock("admin-bind-address", TEXT, "127.0.0.1", "Address for administrators."),
    stock("admin-server-port", NUMBER, "8094", "Its port."),
    stock("sync-interval", SECONDS, "1s", "How long to wait before looking for a missing server again."),
    stock("sync-interval-cap", SECONDS, "10s", "The longest wait when attempts keep failing."),
    stock("sync-forever", TRUTH, "false", "Look for more servers than were announced."),
    stock("keepalive-time", SECONDS, "1h", "Ask a server that is silent this long whether it lives."),
    stock("xfr-channel-size", NUMBER, "150", "Packets of 32 KiB that may wait for each slow connection."),
    stock("buffer-limit", NUMBER, "256", "MiB that may wait for slow readers in all; beyond, stalled ones are cut."),
    stock("drain-timeout", SECONDS, "0s", "Exit so long after the first signal; 0 serves until the second."),
    repeated("target", "local_port:host:port: a port of the node that leads to a destination."),
    stock("bind-address", TEXT, "", "Where the ports of --target listen."),
    stock("tls-server-name", TEXT, "", "Name to ask servers for, where it is not the address."),
    stock("count-server-leases", TRUTH, "false", "Count the servers' leases instead of believing what they say."),
    stock("server-count-source", TEXT, "default", "default, or max: the larger of leases and what servers say."),
    stock("lease-namespace", TEXT, DEFAULT_NAMESPACE, "Where the leases are."),
    stock("lease-label-selector", TEXT, "", f"Selector of the leases; empty is {DEFAULT_LABELS}."),
    stock("lease-label", TEXT, "", "The same, by its older name."),
    stock("kubeconfig", FILE, "", "Way to the API server for leases; empty is the pod's own."),
    ignored("enable-profiling", "there is no Go profile to give; /metrics and `tunnel status` tell what goes on"),
    ignored("enable-contention-profiling", "there is no Go profile to give"),
    ignored("kube-api-content-type", "requests are JSON, which every API server takes"),
    ignored("feature-gates", "nothing is behind a gate here"),
    ignored("probe-interval", "a lost server is noticed at once"),
    ignored("warn-on-channel-limit", "a full buffer holds its source back; see stalled_connections_total"),
)
EPILOG = (
    "Example: garboard tunnel agent --proxy-server-host=10.0.0.1 --ca-cert=ca.crt --agent-cert=a.crt --agent-key=a.key"
)

log = logging.getLogger("garboard.tunnel")


@click.command(cls=GoCommand, params=[*FLAGS, *KLOG], epilog=EPILOG)
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
        environment=os.environ,
        sync_interval_s=flags["sync_interval"],
        sync_interval_cap_s=flags["sync_interval_cap"],
        server_count_source=_count_source(flags["server_count_source"]),
        lease_store=agent_lease_store(flags["kubeconfig"], flags["lease_namespace"], selector)
        if flags["count_server_leases"]
        else None,
        keepalive_s=flags["keepalive_time"],
        drain_timeout_s=flags["drain_timeout"],
        targets=tuple(NodeTarget.parse(text) for text in flags["target"]),
        bind_address=flags["bind_address"],
        stall_policy=StallPolicy(
            buffer_bytes=flags["xfr_channel_size"] * MAX_PAYLOAD, most_bytes=flags["buffer_limit"] * MIB
        ),
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
