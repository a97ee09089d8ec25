"""A whole agent: its pool of servers and its pages."""

import contextlib
import ssl
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Final

from garboard.tunnel.agent.listeners import TargetPorts
from garboard.tunnel.agent.options import AgentOptions
from garboard.tunnel.agent.pool import ServerPool
from garboard.tunnel.agent.server_count import LeaseCounter
from garboard.tunnel.agent.server_stream import AgentCounts
from garboard.tunnel.agent.status import AgentTracer, agent_document
from garboard.tunnel.background import beside
from garboard.tunnel.metrics import Gauge, Metrics, Total
from garboard.tunnel.tls import client_context
from garboard.tunnel.web import OK, Page, PageMaker, json_page, serve_pages
from garboard.tunnel.wire.flow import StallWatch

PREFIX: Final = "konnectivity_network_proxy_agent_"
# Word for word what the stock agent says of these two: its test suite compares it.
DIAL_FAILURES: Final = "Number of failures dialing the remote endpoint, by reason (example: timeout)."
OPEN_ENDPOINTS: Final = "Current number of open endpoint connections."


class Agent:
    """An agent that runs; make it with `run_agent`."""

    def __init__(self, options: AgentOptions) -> None:
        self.counts = AgentCounts()
        self.watch = StallWatch(options.stall_policy)
        self.ports = TargetPorts(options.bind_address, options.targets, self.watch)
        self.pool = ServerPool(options, lambda: _tls(options), self.counts, self.watch, self.ports)
        self.health_port = self.admin_port = 0
        self._options = options
        self._metrics = self._make_metrics()
        store = options.lease_store
        self._leases = LeaseCounter(store, self.pool.count, self.pool.recount) if store is not None else None
        if self._leases is not None:
            self._metrics.add(self._leases.families())

    async def count_leases(self) -> None:
        if self._leases is not None:
            await self._leases.run()

    def pages(self) -> dict[str, PageMaker]:
        return {
            "/healthz": lambda _verbose: OK,
            "/readyz": self._readiness,
            "/ready": self._readiness,
            "/metrics": lambda _verbose: Page(HTTPStatus.OK, self._metrics.text()),
        }

    def status(self, _verbose: bool) -> Page:
        return json_page(agent_document(self._options, self.pool, self.ports))

    @property
    def open_connections(self) -> int:
        """Both ways."""
        return self.pool.open_endpoints + self.ports.clients

    def _readiness(self, is_verbose: bool) -> Page:
        failures = self.ports.failures()
        checks = {"ping": "", "server-connected": "" if self.pool.streams else "no servers connected"}
        checks |= {f"target {target}": failures.get(target, "") for target in self.ports.targets}
        lines = [f"[-]{name} failed: {why}" if why else f"[+]{name} ok" for name, why in checks.items()]
        if any(checks.values()):
            return Page(HTTPStatus.SERVICE_UNAVAILABLE, "\n".join([*lines, "readyz check failed\n"]))
        return Page(HTTPStatus.OK, "\n".join([*lines, "readyz check passed\n"])) if is_verbose else OK

    def _make_metrics(self) -> Metrics:
        counts, pool, ports = self.counts, self.pool, self.ports
        return Metrics(
            PREFIX,
            {
                "dial_duration_seconds": ("How long dials of endpoints took.", counts.dial_seconds),
                "server_connection_failure_count": ("Failures of server connections.", counts.connection_failures),
                "endpoint_dial_failure_total": (DIAL_FAILURES, counts.dial_failures),
                "open_server_connections": ("Connected servers.", Gauge(lambda: len(pool.streams))),
                "known_server_count": ("Servers that should be connected.", Gauge(lambda: pool.server_count)),
                "open_endpoint_connections": (OPEN_ENDPOINTS, Gauge(lambda: pool.open_endpoints)),
                "stream_packets_total": ("Packets by direction and type.", counts.packets),
                "stream_errors_total": ("Streams that failed, by direction and code.", counts.errors.counter),
                "stalled_connections_total": ("Connections closed since they took no data.", Total(self._stalled)),
                "queued_bytes": ("Bytes that wait, by where.", Gauge(self._queues, "queue")),
                "target_connections": ("Open connections of the node.", Gauge(lambda: ports.clients)),
                "target_dials_total": ("Connections of the node, by target and outcome.", ports.dials),
                "target_servers": ("Servers that allow each target.", Gauge(ports.allowing_servers, "target")),
            },
        )

    def _stalled(self) -> int:
        return self.counts.stalled_endpoints + self.ports.tunnels.stalled

    def _queues(self) -> dict[str, float]:
        streams = self.pool.streams.values()
        endpoints = [each for stream in streams if stream.dialer for each in stream.dialer.endpoints.values()]
        return {
            "to_server": sum(stream.queued_bytes for stream in streams),
            "to_endpoint": sum(endpoint.outflow.queued_bytes for endpoint in endpoints),
            "to_client": sum(frontend.outflow.queued_bytes for frontend in self.ports.tunnels.frontends.values()),
        }


def _tls(options: AgentOptions) -> ssl.SSLContext:
    """From the files as they are now: every connect sees new certificates and authorities."""
    return client_context(options.ca_cert, options.agent_cert, options.agent_key, options.alpn_proto)


@contextlib.asynccontextmanager
async def run_agent(options: AgentOptions) -> AsyncIterator[Agent]:
    """An agent while the context is open."""
    options.check()
    _tls(options)  # files that cannot be used are an error before anything listens
    agent = Agent(options)
    async with contextlib.AsyncExitStack() as stack:
        health = serve_pages(options.health_server_host, options.health_server_port, agent.pages())
        agent.health_port = await stack.enter_async_context(health)
        elsewhere = Page(HTTPStatus.MOVED_PERMANENTLY, "", f"http://localhost:{agent.health_port}/metrics")
        pages = {"/metrics": lambda _: elsewhere, "/status": agent.status}
        questions = {"/trace": AgentTracer(agent.pool, agent.ports)}
        admin = serve_pages(options.admin_bind_address, options.admin_server_port, pages, questions)
        agent.admin_port = await stack.enter_async_context(admin)
        jobs = (
            agent.pool.run(),
            agent.pool.ask(),
            agent.pool.keep_alive(),
            agent.watch.run(),
            agent.ports.run(),
            agent.ports.tunnels.keep_time(),
        )
        await stack.enter_async_context(beside(*jobs, agent.count_leases()))
        try:
            yield agent
        finally:
            agent.ports.close()
            await agent.pool.close()
