"""The Connect stream of one agent."""

import logging
import time
from typing import Final

from garboard.errors import GarboardError, InvalidValue
from garboard.rpc import ServerCall, Status, StatusCode
from garboard.rpc.aio import AioLink
from garboard.rpc.metadata import Metadata
from garboard.tunnel.channel import Channel
from garboard.tunnel.dialer.dialer import Dialer
from garboard.tunnel.identifiers import Identifiers
from garboard.tunnel.log_text import quoted, subject_of
from garboard.tunnel.server.proxy import Proxy
from garboard.tunnel.server.reverse import AgentPeer, ReverseObserver, guard_of
from garboard.tunnel.server.routing import AgentBackend
from garboard.tunnel.wire import packets
from garboard.tunnel.wire.capabilities import Terms, answer
from garboard.tunnel.wire.packets import encode_packet
from garboard.tunnel.wire.sockets import address_text

log = logging.getLogger("garboard.tunnel")


ANSWERS_EVERY_S: Final = 0.1  # to an agent that asks more often; what it asks in between is not answered


class ServerIdentity:
    """What every agent learns of the server, and of the workers beside it if it is one of several."""

    def __init__(self, server_id: str, server_count: int, *, server: str = "", workers: int = 1) -> None:
        self.server_id = server_id
        self.server_count = server_count
        self.present: tuple[str, ...] = (server_id,)  # the workers that run, by server id
        self._server = server or server_id
        self._workers = workers

    def as_metadata(self) -> Metadata:
        return (("serverid", self.server_id), ("servercount", str(self.server_count)))

    def as_packet(self) -> packets.ServersResponse:
        return packets.ServersResponse(self._server, self.server_count, self._workers, self.present)


class AgentStream(Channel):
    """Listens to the call of an agent (`CallListener`)."""

    def __init__(
        self,
        proxy: Proxy,
        identity: ServerIdentity,
        link: AioLink,
        call: ServerCall,
        backend: AgentBackend,
        terms: Terms,
        peer: AgentPeer,
    ) -> None:
        super().__init__(link, call, proxy.packets, segments=("from_agent", "to_agent"))
        self._call = call
        self._identity = identity
        self._may_answer_at = 0.0
        self.agent_id = backend.agent_id
        self.peer = peer
        self.terms = terms
        self.sender.agree(terms)
        self.tunnels, self.backend = proxy, backend
        backend.takes_cuts = terms.has_credit
        if terms.takes_dials:
            self.dialer_parity = 1
            observer = ReverseObserver(peer, proxy.reverse, proxy.allowed)
            guard = guard_of(proxy.allowed, lambda: proxy.is_draining, observer.is_over_quota)
            self.dialer = Dialer(self, proxy.reverse_ids, observer, proxy.watch, proxy.resolver, guard)
        proxy.join(backend, self)
        call.listener = self
        log.info("agent.connected %s agents=%d", peer, len(proxy.streams))
        if terms.refused:
            refused = ",".join(map(str, terms.refused))
            log.warning("agent.targets.refused %s targets=%s allowed=%s", peer, refused, proxy.allowed)

    def drain(self) -> None:
        # Not by GOAWAY: stock agents give up a connection that takes no new streams, and with it all that it carries.
        # They have no connections of nodes to send elsewhere.
        if self.terms.takes_dials:
            super().drain()

    def servers_received(self, packet: packets.ServersRequest | packets.ServersResponse) -> None:
        now = time.monotonic()
        if isinstance(packet, packets.ServersRequest) and now >= self._may_answer_at:
            self._may_answer_at = now + ANSWERS_EVERY_S
            self.send(encode_packet(self._identity.as_packet()))

    def started(self) -> None:
        pass

    def peer_ended(self) -> None:
        self._call.finish()
        self._leave("the agent closed its stream")

    def ended(self, status: Status) -> None:
        if isinstance(self.tunnels, Proxy):
            self.count_errors(self.tunnels.errors, status)
        self._leave(status.message)

    def refuse(self, reason: str) -> None:
        self._call.finish(Status(StatusCode.INVALID_ARGUMENT, reason))
        self._leave(reason)
        self.link.poke()

    def _leave(self, reason: str) -> None:
        assert self.tunnels is not None
        if self.backend in self.tunnels.streams:
            log.info("agent.disconnected %s reason=%s", self.peer, quoted(reason))
        self.close()


def certified_name(link: AioLink) -> str:
    """Whom the certificate of a peer names; empty if it showed none."""
    secure = link.transport.get_extra_info("ssl_object") if link.transport is not None else None
    return subject_of(secure.getpeercert()) if secure is not None else ""


def accept_agent(proxy: Proxy, identity: ServerIdentity, link: AioLink, call: ServerCall, proven: str) -> None:
    """Begin the stream of an agent, or refuse it in words; `proven` is who its certificate or its token says it is."""
    try:
        agent_id = _one_value(call.metadata, "agentid")
        identifiers = Identifiers.parse(_one_value(call.metadata, "agentidentifiers", default=""))
    except InvalidValue as error:
        call.finish(Status(StatusCode.INVALID_ARGUMENT, error.message))
        return
    told, terms = answer(call.metadata, proxy.allowed)
    call.start((*identity.as_metadata(), *told))
    peer = AgentPeer(agent_id, proven, _address(link))
    AgentStream(proxy, identity, link, call, AgentBackend(agent_id, identifiers), terms, peer)
    link.poke()


def refuse_agent(link: AioLink, call: ServerCall, error: GarboardError) -> None:
    """End the call of an agent that is not let in."""
    if call.status is not None:
        return
    log.warning("agent.refused from=%s reason=%s", _address(link), quoted(error.message))
    call.finish(Status(StatusCode.UNAUTHENTICATED, error.message))
    link.poke()


def host_of(link: AioLink) -> str:
    """Where a peer connects from, whatever its port."""
    peer = link.transport.get_extra_info("peername") if link.transport is not None else None
    return str(peer[0]) if isinstance(peer, tuple) else ""


def _address(link: AioLink) -> str:
    return address_text(link.transport.get_extra_info("peername")) if link.transport is not None else ""


def _one_value(metadata: Metadata, key: str, *, default: str | None = None) -> str:
    values = [value for name, value in metadata if name == key]
    if not values and default is not None:
        return default
    if len(values) != 1 or not isinstance(values[0], str):
        raise InvalidValue(f"the metadata {key!r} is needed exactly once, not {len(values)} times")
    return values[0]
