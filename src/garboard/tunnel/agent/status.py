"""What an agent answers on its admin port: `/status` and `/trace`."""

import asyncio
from collections.abc import Mapping
from http import HTTPStatus

from garboard.errors import InvalidValue
from garboard.tunnel.agent.listeners import TargetPorts
from garboard.tunnel.agent.options import AgentOptions
from garboard.tunnel.agent.pool import ServerPool
from garboard.tunnel.agent.server_stream import ServerStream
from garboard.tunnel.agent.servers import ServerBackend
from garboard.tunnel.destinations import Destination
from garboard.tunnel.frontend.probe import ROUND_TRIP_TIMEOUT_S, Hop, Probe, trace_document
from garboard.tunnel.web import Page, json_page
from garboard.values import Json


def agent_document(options: AgentOptions, pool: ServerPool, ports: TargetPorts) -> Json:
    """The servers it has and wants, the targets that it offers, and what waits."""
    failures = ports.failures()
    allowing = ports.allowing_servers()
    servers: list[Json] = [_server(name, stream) for name, stream in pool.streams.items()]
    targets: list[Json] = [
        {"target": str(each), "bindAddress": options.bind_address, "problem": failures.get(each, ""),
         "allowingServers": allowing[str(each)]}
        for each in ports.targets
    ]  # fmt: skip
    return {
        "end": "agent",
        "id": options.agent_id,
        "identifiers": options.agent_identifiers,
        "isDraining": pool.is_draining,
        "wantedServers": pool.server_count,
        "servers": servers,
        "targets": targets,
        "connections": {"toNodes": pool.open_endpoints, "fromNodes": ports.clients},
    }


def _server(name: str, stream: ServerStream) -> Json:
    terms = stream.sender.terms
    refused: list[Json] = [str(each) for each in terms.refused]
    return {
        "id": name,
        "isOurs": terms.has_credit,
        "takesConnectionsOfNodes": terms.takes_dials,
        "isDraining": stream.backend is not None and stream.backend.is_draining,
        "connections": stream.endpoints,
        "queuedBytes": stream.queued_bytes,
        "refusedTargets": refused,
    }


class AgentTracer:
    """Answers `/trace?to=host:port`: the way from this node to a destination, through each server; one at a time."""

    def __init__(self, pool: ServerPool, ports: TargetPorts) -> None:
        self._pool = pool
        self._ports = ports
        self._lock = asyncio.Lock()

    async def __call__(self, query: Mapping[str, str]) -> Page:
        try:
            to = Destination.parse(query.get("to", ""))
        except InvalidValue as error:
            return Page(HTTPStatus.BAD_REQUEST, f"{error.message}\n")
        async with self._lock:
            return json_page(trace_document(str(to), await self._hops(to)))

    async def _hops(self, to: Destination) -> list[Hop]:
        hops = [self._listener(to)]
        if not self._pool.streams:
            return [*hops, Hop("server", "any", "no server is connected")]
        for name, stream in list(self._pool.streams.items()):
            hops += await self._through(name, stream, str(to))
        return hops

    def _listener(self, to: Destination) -> Hop:
        failures = self._ports.failures()
        target = next((each for each in self._ports.targets if each.destination == to), None)
        if target is None:
            return Hop("target", str(to), "no --target of this agent leads there")
        return Hop("target", f"port {target.local_port}", failures.get(target, ""))

    async def _through(self, name: str, stream: ServerStream, to: str) -> list[Hop]:
        server = f"server {name}"
        if not stream.sender.terms.takes_dials:
            return [Hop("server", server, "it takes no connections of nodes")]
        backend = next((each for each in self._ports.servers.backends if each.server_id == name), None)
        if backend is None:
            return [Hop("server", server, "this agent offers it no targets")]
        try:
            link = Hop("server", server, seconds=await stream.link.round_trip(ROUND_TRIP_TIMEOUT_S))
        except TimeoutError:
            return [Hop("server", server, "no answer", ROUND_TRIP_TIMEOUT_S)]
        return [link, await self._dial(backend, to)]

    async def _dial(self, backend: ServerBackend, to: str) -> Hop:
        error, seconds = await Probe(self._ports.tunnels).dial(to, backend)
        return Hop("dial", f"{to}, by {backend.server_id}", error, seconds)
