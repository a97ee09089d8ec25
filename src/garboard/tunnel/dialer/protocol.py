"""The end that dials, on one Connect stream and without I/O: packets of the peer in, packets and effects out.

An agent is this end for connections into its node's network, a server for connections into the control plane's.
Dialling, sockets and buffers are left to the modules around it.
"""

from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, Final, NamedTuple

from garboard.tunnel.dialer.states import (
    CLOSE_REQUESTED,
    DIALLED,
    DIALLING,
    DONE,
    ENDPOINT_CLOSED,
    OPEN,
    TRANSITIONS,
    ConnectionAction,
    ConnectionTrigger,
    EndpointConnection,
)
from garboard.tunnel.wire import packets
from garboard.tunnel.wire.packets import Packet, encode_packet

STALLED: Final = "closed alone: the endpoint took no data while the other connections waited"


class ToPeer(NamedTuple):
    """Send to the peer, behind what the connection has sent before; without one as soon as possible."""

    message: bytes
    connection: EndpointConnection | None


class Dial(NamedTuple):
    connection: EndpointConnection


class StopDial(NamedTuple):
    connection: EndpointConnection


class Deny(NamedTuple):
    """A dial that was not even tried."""

    request: packets.DialRequest
    error: str


class Ending(Enum):
    """How a socket ends: what waits for it is written first, unless it is cut."""

    CLOSE = "flush and close"
    RESET = "flush and reset"
    CUT = "cut"


CLOSE: Final = Ending.CLOSE


class CloseEndpoint(NamedTuple):
    connection: EndpointConnection
    ending: Ending


class ForgetConnection(NamedTuple):
    """The connection is over for the peer."""

    connection: EndpointConnection


DialerEffect = ToPeer | Dial | StopDial | Deny | CloseEndpoint | ForgetConnection
Guard = Callable[[str], str]  # why an address must not be dialled; empty when it may


class DialerProtocol:
    """The connections of one stream; `ids` gives each connection of the process a number of its own."""

    def __init__(self, ids: Iterator[int], guard: Guard = lambda _address: "") -> None:
        self._ids = ids
        self._guard = guard
        self.connections: dict[int, EndpointConnection] = {}  # that are not DONE, by connectID
        self._dials: dict[int, EndpointConnection] = {}  # that are DIALLING, by the peer's number for them

    def peer_sent(self, packet: Packet) -> list[DialerEffect]:
        """One packet of the peer that is not DATA for an open connection."""
        handle = _HANDLERS.get(type(packet))
        return handle(self, packet) if handle is not None else []  # stock agents ignore the rest as well

    def _data(self, packet: packets.Data) -> list[DialerEffect]:
        return [_to_peer(packets.CloseResponse("unrecognized connectID", packet.connect_id))]

    def _close_requested(self, packet: packets.CloseRequest) -> list[DialerEffect]:
        connection = self.connections.get(packet.connect_id)
        if connection is None or connection.state is not OPEN:
            return [_to_peer(packets.CloseResponse("Unknown connectID", packet.connect_id))]
        return self._move(connection, CLOSE_REQUESTED)

    def _peer_closed(self, packet: packets.CloseResponse) -> list[DialerEffect]:
        connection = self.connections.get(packet.connect_id)
        trigger = ConnectionTrigger.PEER_CUT if packet.error else ConnectionTrigger.PEER_CLOSED
        return self._move(connection, trigger) if connection else []

    def _dial_cancelled(self, packet: packets.CloseDial) -> list[DialerEffect]:
        connection = self._dials.get(packet.random)
        return self._move(connection, ConnectionTrigger.DIAL_CANCELLED) if connection else []

    def is_dialling(self, random: int) -> bool:
        return random in self._dials

    def dialled(self, connection: EndpointConnection) -> list[DialerEffect]:
        return self._move(connection, DIALLED)

    def dial_failed(self, connection: EndpointConnection, error: str) -> list[DialerEffect]:
        return self._move(connection, ConnectionTrigger.DIAL_FAILED, error)

    def endpoint_closed(self, connection: EndpointConnection, error: str = "") -> list[DialerEffect]:
        """The endpoint sends no more: what it sent before goes first."""
        return self._move(connection, ENDPOINT_CLOSED, error)

    def endpoint_stalled(self, connection: EndpointConnection) -> list[DialerEffect]:
        return self._move(connection, ConnectionTrigger.STALLED, STALLED)

    def peer_lost(self) -> list[DialerEffect]:
        return [
            effect
            for connection in list(self.connections.values())
            for effect in self._move(connection, ConnectionTrigger.PEER_LOST)
        ]

    def _dial(self, request: packets.DialRequest) -> list[DialerEffect]:
        if request.protocol not in ("tcp", "tcp4", "tcp6"):
            error = f"dial {request.protocol}: only tcp is carried"
        elif request.random in self._dials:
            error = f"dial tcp {request.address}: this number is taken by another dial"
        else:
            error = self._guard(request.address)
        if error:
            return [_to_peer(packets.DialResponse(error, 0, request.random)), Deny(request, error)]
        connection = EndpointConnection(request.address, request.random, next(self._ids), request.client)
        self.connections[connection.connect_id] = connection
        self._dials[request.random] = connection
        return [Dial(connection)]

    def _move(self, connection: EndpointConnection, trigger: ConnectionTrigger, error: str = "") -> list[DialerEffect]:
        before = connection.state
        following = _STEPS.get((before, trigger))
        if following is None:
            return []
        if before is DIALLING:
            self._dials.pop(connection.random, None)
        connection.state, makers = following
        if connection.state is DONE:
            self.connections.pop(connection.connect_id, None)
        return [make(connection, error) for make in makers]

    @classmethod
    def handlers(cls) -> "dict[type, Callable[[DialerProtocol, Any], list[DialerEffect]]]":
        """Return the methods by the type of a packet. What held its own would wait for the garbage collector."""
        return {
            packets.Data: cls._data,
            packets.DialRequest: cls._dial,
            packets.CloseRequest: cls._close_requested,
            packets.CloseResponse: cls._peer_closed,
            packets.CloseDial: cls._dial_cancelled,
        }


_HANDLERS: Final = DialerProtocol.handlers()


def _send_accepted(connection: EndpointConnection, _error: str) -> DialerEffect:
    return _to_peer(packets.DialResponse("", connection.connect_id, connection.random), connection)


def _send_refused(connection: EndpointConnection, error: str) -> DialerEffect:
    return _to_peer(packets.DialResponse(error, 0, connection.random), connection)


def _send_closed(connection: EndpointConnection, error: str) -> DialerEffect:
    return _to_peer(packets.CloseResponse(error, connection.connect_id), connection)


_EFFECTS: Final[dict[ConnectionAction, Callable[[EndpointConnection, str], DialerEffect]]] = {
    ConnectionAction.SEND_ACCEPTED: _send_accepted,
    ConnectionAction.SEND_REFUSED: _send_refused,
    ConnectionAction.SEND_CLOSED: _send_closed,
    ConnectionAction.STOP_DIAL: lambda connection, _error: StopDial(connection),
    ConnectionAction.FORGET: lambda connection, _error: ForgetConnection(connection),
    ConnectionAction.FLUSH_AND_CLOSE: lambda connection, _error: CloseEndpoint(connection, CLOSE),
    ConnectionAction.FLUSH_AND_RESET: lambda connection, _error: CloseEndpoint(connection, Ending.RESET),
    ConnectionAction.CUT: lambda connection, _error: CloseEndpoint(connection, Ending.CUT),
}


# The table of `states` with what makes the effects in place of their names: looked up once.
_STEPS: Final = {
    before: (after, tuple(_EFFECTS[action] for action in actions)) for before, (after, actions) in TRANSITIONS.items()
}


def _to_peer(packet: Packet, connection: EndpointConnection | None = None) -> ToPeer:
    return ToPeer(encode_packet(packet), connection)
