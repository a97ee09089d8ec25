"""What a server answers on its admin port: `/status` and `/trace`."""

import asyncio
from collections.abc import Mapping
from http import HTTPStatus

from garboard.tunnel.frontend.probe import ROUND_TRIP_TIMEOUT_S, Hop, Probe, trace_document
from garboard.tunnel.server.agent_stream import AgentStream
from garboard.tunnel.server.cluster import ServedCluster
from garboard.tunnel.server.clusters import ServedClusters
from garboard.tunnel.server.routing import AgentBackend
from garboard.tunnel.web import Page, json_page
from garboard.values import Json


def server_document(server_id: str, clusters: ServedClusters) -> Json:
    """Everything that is connected, allowed, refused and waiting."""
    tenants: list[Json] = [_tenant(cluster) for cluster in clusters.all]
    file: Json = {"path": str(clusters.file), "problem": clusters.problem} if clusters.file else None
    return {"end": "server", "id": server_id, "tenants": tenants, "tenantsFile": file}


def _tenant(cluster: ServedCluster) -> Json:
    tenant, proxy = cluster.tenant, cluster.proxy
    agents: list[Json] = [_agent(stream) for stream in proxy.streams.values() if isinstance(stream, AgentStream)]
    names: list[Json] = [*sorted(tenant.server_names)]
    failures: dict[str, Json] = {**proxy.protocol.counts.dial_failures}
    return {
        "name": tenant.name,
        "serverNames": names,
        "front": tenant.frontend.uds_name or f"port {cluster.server_port}",
        "mode": str(tenant.frontend.mode),
        "allowedDestinations": str(tenant.allowed),
        "authentication": "token" if tenant.token_rules else "certificate" if tenant.keys.client_ca else "none",
        "isReady": proxy.backends.is_ready,
        "agents": agents,
        "connections": {
            "toNodes": sum(len(backend.open) for backend in proxy.streams),
            "pendingDials": proxy.protocol.pending_dials,
            "fromNodes": proxy.reverse.open,
        },
        "queuedBytes": {
            "toClients": sum(frontend.outflow.queued_bytes for frontend in proxy.frontends.values()),
            "toAgents": sum(stream.queued_bytes for stream in proxy.streams.values()),
        },
        "denials": {"agents": cluster.denials.as_json(), "destinations": proxy.reverse.denials.as_json()},
        "dialFailures": failures,
    }


def _agent(stream: AgentStream) -> Json:
    backend = stream.backend
    assert isinstance(backend, AgentBackend)
    hosts: list[Json] = [*sorted(backend.identifiers.hosts)]
    refused: list[Json] = [str(each) for each in stream.terms.refused]
    return {
        "id": backend.agent_id,
        "from": stream.peer.address,
        "identity": stream.peer.proven,
        "identifiers": {"hosts": hosts, "isDefaultRoute": backend.identifiers.is_default_route},
        "isDraining": backend.is_draining,
        "isOurs": stream.terms.has_credit,
        "connections": len(backend.open),
        "pendingDials": len(backend.pending),
        "queuedBytes": stream.queued_bytes,
        "refusedTargets": refused,
    }


class ServerTracer:
    """Answers `/trace?to=host:port`, with `agent` and `tenant` to choose the way; one request at a time."""

    def __init__(self, clusters: ServedClusters) -> None:
        self._clusters = clusters
        self._lock = asyncio.Lock()

    async def __call__(self, query: Mapping[str, str]) -> Page:
        to = query.get("to", "")
        found = [each for each in self._clusters.all if query.get("tenant", each.tenant.name) == each.tenant.name]
        if not to or not found:
            return Page(HTTPStatus.BAD_REQUEST, "say where `to`, and a `tenant` of this server if there are several\n")
        async with self._lock:
            return json_page(trace_document(to, await self._hops(found[0], to, query.get("agent", ""))))

    async def _hops(self, cluster: ServedCluster, to: str, agent_id: str) -> list[Hop]:
        stream = _choose(cluster, to, agent_id)
        if stream is None:
            wanted = f"agent {agent_id}" if agent_id else "an agent by the strategies"
            return [Hop("agent", wanted, "it is not connected" if agent_id else "no agent is connected")]
        backend = stream.backend
        assert isinstance(backend, AgentBackend)
        chosen = Hop("agent", f"{backend.agent_id}{', draining' if backend.is_draining else ''}")
        try:
            link = Hop("link", "round trip to it", seconds=await stream.link.round_trip(ROUND_TRIP_TIMEOUT_S))
        except TimeoutError:
            return [chosen, Hop("link", "round trip to it", "no answer", ROUND_TRIP_TIMEOUT_S)]
        error, seconds = await Probe(cluster.proxy).dial(to, backend)
        return [chosen, link, Hop("dial", f"{to}, by the agent", error, seconds)]


def _choose(cluster: ServedCluster, to: str, agent_id: str) -> AgentStream | None:
    streams = [stream for stream in cluster.proxy.streams.values() if isinstance(stream, AgentStream)]
    if agent_id:
        return next((stream for stream in streams if stream.agent_id == agent_id), None)
    backend = cluster.proxy.backends.find(to)
    return next((stream for stream in streams if stream.backend is backend), None)
