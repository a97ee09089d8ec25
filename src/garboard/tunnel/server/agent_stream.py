"""The Connect stream of one agent."""

import logging
from dataclasses import dataclass

from garboard.errors import GarboardError, InvalidValue
from garboard.rpc import ServerCall, Status, StatusCode
from garboard.rpc.aio import AioLink
from garboard.rpc.metadata import Metadata
from garboard.rpc.wire import BadWire
from garboard.tunnel.flow import FairSender
from garboard.tunnel.identifiers import Identifiers
from garboard.tunnel.packets import counted_type_of, peek_data
from garboard.tunnel.server.proxy import Proxy

log = logging.getLogger("garboard.tunnel")


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """What every agent is told."""

    server_id: str
    server_count: int

    def as_metadata(self) -> Metadata:
        return (("serverid", self.server_id), ("servercount", str(self.server_count)))


class AgentStream:
    """Listens to the call of an agent (`CallListener`) and is the source of what the agent sends."""

    def __init__(self, proxy: Proxy, link: AioLink, call: ServerCall, agent_id: str, identifiers: Identifiers) -> None:
        self._proxy = proxy
        self._link = link
        self._call = call
        self._sender = FairSender(link, call)
        self.backend = proxy.board.agent_joined(agent_id, identifiers)
        proxy.senders[self.backend] = self._sender
        call.listener = self
        log.info("agent.connected agent=%s agents=%d", agent_id, len(proxy.senders))

    def release(self, size: int) -> None:
        self._call.consume(size)
        self._link.poke()

    def started(self) -> None:
        pass

    def messages_received(self, messages: list[bytes]) -> None:
        proxy, board, backend = self._proxy, self._proxy.board, self.backend
        for message in messages:
            if peek_data(message) is None:
                proxy.packets.of("from_agent", counted_type_of(message)).value += 1
            try:
                effects = board.agent_said(backend, message)
            except BadWire as error:
                self._refuse(error.message)
                return
            proxy.perform(effects, message, self)

    def peer_ended(self) -> None:
        self._call.finish()
        self._leave("the agent closed its stream")

    def writable(self) -> None:
        self._sender.writable()

    def ended(self, status: Status) -> None:
        self._leave(status.message)

    def _refuse(self, reason: str) -> None:
        self._call.finish(Status(StatusCode.INVALID_ARGUMENT, reason))
        self._leave(reason)
        self._link.poke()

    def _leave(self, reason: str) -> None:
        if self._proxy.senders.pop(self.backend, None) is None:
            return
        log.info("agent.disconnected agent=%s reason=%s", self.backend.agent_id, reason)
        self._sender.clear()
        self._proxy.perform(self._proxy.board.agent_left(self.backend))


def accept_agent(proxy: Proxy, identity: ServerIdentity, link: AioLink, call: ServerCall) -> None:
    """Begin the stream of an agent, or refuse it in words."""
    try:
        agent_id = _one_value(call.metadata, "agentid")
        identifiers = Identifiers.parse(_one_value(call.metadata, "agentidentifiers", default=""))
    except InvalidValue as error:
        call.finish(Status(StatusCode.INVALID_ARGUMENT, error.message))
        return
    call.start(identity.as_metadata())
    AgentStream(proxy, link, call, agent_id, identifiers)
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
