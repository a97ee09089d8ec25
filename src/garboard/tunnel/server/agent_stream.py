"""The Connect stream of one agent."""

import logging
from dataclasses import dataclass

from garboard.errors import GarboardError, InvalidValue
from garboard.rpc import ServerCall, Status, StatusCode
from garboard.rpc.aio import AioLink
from garboard.rpc.metadata import Metadata
from garboard.tunnel.capabilities import Terms, answer
from garboard.tunnel.channel import Channel
from garboard.tunnel.exits import Exit
from garboard.tunnel.identifiers import Identifiers
from garboard.tunnel.server.proxy import Proxy
from garboard.tunnel.server.reverse import ReverseObserver, guard_of
from garboard.tunnel.server.routing import AgentBackend

log = logging.getLogger("garboard.tunnel")


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """What every agent is told."""

    server_id: str
    server_count: int

    def as_metadata(self) -> Metadata:
        return (("serverid", self.server_id), ("servercount", str(self.server_count)))


class AgentStream(Channel):
    """Listens to the call of an agent (`CallListener`)."""

    def __init__(self, proxy: Proxy, link: AioLink, call: ServerCall, backend: AgentBackend, terms: Terms) -> None:
        super().__init__(link, call, proxy.packets, segments=("from_agent", "to_agent"))
        self._call = call
        self.agent_id = backend.agent_id
        self.terms = terms
        self.sender.agree(terms)
        self.entry, self.backend = proxy, backend
        if terms.takes_dials:
            self.exit_parity = 1
            observer = ReverseObserver(backend.agent_id, proxy.reverse, proxy.allowed)
            self.exit = Exit(self, proxy.reverse_ids, observer, proxy.watch, guard_of(proxy.allowed))
        proxy.join(backend, self)
        call.listener = self
        log.info("agent.connected agent=%s agents=%d", self.agent_id, len(proxy.streams))
        if terms.refused:
            refused = ",".join(map(str, terms.refused))
            log.warning("agent.targets.refused agent=%s targets=%s allowed=%s", self.agent_id, refused, proxy.allowed)

    def started(self) -> None:
        pass

    def peer_ended(self) -> None:
        self._call.finish()
        self._leave("the agent closed its stream")

    def ended(self, status: Status) -> None:
        if isinstance(self.entry, Proxy):
            self.count_errors(self.entry.errors, status)
        self._leave(status.message)

    def refuse(self, reason: str) -> None:
        self._call.finish(Status(StatusCode.INVALID_ARGUMENT, reason))
        self._leave(reason)
        self.link.poke()

    def _leave(self, reason: str) -> None:
        assert self.entry is not None
        if self.backend in self.entry.streams:
            log.info("agent.disconnected agent=%s reason=%s", self.agent_id, reason)
        self.close()


def accept_agent(proxy: Proxy, identity: ServerIdentity, link: AioLink, call: ServerCall) -> None:
    """Begin the stream of an agent, or refuse it in words."""
    try:
        agent_id = _one_value(call.metadata, "agentid")
        identifiers = Identifiers.parse(_one_value(call.metadata, "agentidentifiers", default=""))
    except InvalidValue as error:
        call.finish(Status(StatusCode.INVALID_ARGUMENT, error.message))
        return
    told, terms = answer(call.metadata, proxy.allowed)
    call.start((*identity.as_metadata(), *told))
    AgentStream(proxy, link, call, AgentBackend(agent_id, identifiers), terms)
    link.poke()


def refuse_agent(link: AioLink, call: ServerCall, error: GarboardError) -> None:
    """End the call of an agent that is not let in."""
    if call.status is not None:
        return
    log.warning("agent.refused reason=%s", error.message)
    call.finish(Status(StatusCode.UNAUTHENTICATED, error.message))
    link.poke()


def _one_value(metadata: Metadata, key: str, *, default: str | None = None) -> str:
    values = [value for name, value in metadata if name == key]
    if not values and default is not None:
        return default
    if len(values) != 1 or not isinstance(values[0], str):
        raise InvalidValue(f"the metadata {key!r} is needed exactly once, not {len(values)} times")
    return values[0]
