"""The end that dials, on one Connect stream and without I/O: packets of the peer in, packets and deeds out.

An agent is this end for connections to its node's network, a server for connections to the control plane's.
Dialling, sockets and buffers are left to the modules around it.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from garboard.tunnel import packets
from garboard.tunnel.connections import TRANSITIONS, Action, Connection, State, Trigger
from garboard.tunnel.packets import Packet, encode_packet

DRAIN: Final = encode_packet(packets.Drain())
STALLED: Final = "closed alone: the endpoint took no data while the other connections waited"


class ToPeer(NamedTuple):
    """Send to the peer, behind what the connection has sent before; without one as soon as possible."""

    message: bytes
    connection: Connection | None


class Dial(NamedTuple):
    connection: Connection


class StopDial(NamedTuple):
    connection: Connection


class Deny(NamedTuple):
    """A dial that was not even tried."""

    address: str
    error: str


class CloseEndpoint(NamedTuple):
    """Close the socket, after what waits for it has been written unless the connection is cut."""

    connection: Connection
    is_cut: bool


class Forget(NamedTuple):
    """The connection is over for the peer."""

    connection: Connection


Effect = ToPeer | Dial | StopDial | Deny | CloseEndpoint | Forget
Guard = Callable[[str], str]  # why an address must not be dialled; empty when it may


class Exchange:
    """The connections of one stream; `ids` gives every connection of the process another number."""

    def __init__(self, ids: Iterator[int], guard: Guard = lambda _address: "") -> None:
        self._ids = ids
        self._guard = guard
        self.connections: dict[int, Connection] = {}  # that are not DONE, by connectID
        self._dials: dict[int, Connection] = {}  # that are DIALLING, by the peer's number for them
        self._takers: dict[type, Callable[[Any], list[Effect]]] = {
            packets.Data: self._data,
            packets.DialRequest: self._dial,
            packets.CloseRequest: self._close_asked,
            packets.CloseResponse: self._peer_closed,
            packets.CloseDial: self._dial_cancelled,
        }

    def peer_said(self, packet: Packet) -> list[Effect]:
        """One packet of the peer that is not DATA for an open connection."""
        take = self._takers.get(type(packet))
        return take(packet) if take is not None else []  # stock agents ignore the rest as well

    def _data(self, packet: packets.Data) -> list[Effect]:
        return [_to_peer(packets.CloseResponse("unrecognized connectID", packet.connect_id))]

    def _close_asked(self, packet: packets.CloseRequest) -> list[Effect]:
        connection = self.connections.get(packet.connect_id)
        if connection is None or connection.state is not State.OPEN:
            return [_to_peer(packets.CloseResponse("Unknown connectID", packet.connect_id))]
        return self._move(connection, Trigger.CLOSE_ASKED)

    def _peer_closed(self, packet: packets.CloseResponse) -> list[Effect]:
        connection = self.connections.get(packet.connect_id)
        return self._move(connection, Trigger.PEER_CLOSED) if connection else []

    def _dial_cancelled(self, packet: packets.CloseDial) -> list[Effect]:
        connection = self._dials.get(packet.random)
        return self._move(connection, Trigger.DIAL_CANCELLED) if connection else []

    def is_dialling(self, random: int) -> bool:
        return random in self._dials

    def dialled(self, connection: Connection) -> list[Effect]:
        return self._move(connection, Trigger.DIALLED)

    def dial_failed(self, connection: Connection, error: str) -> list[Effect]:
        return self._move(connection, Trigger.DIAL_FAILED, error)

    def endpoint_closed(self, connection: Connection, error: str = "") -> list[Effect]:
        """The endpoint sends no more: what it sent before goes first."""
        return self._move(connection, Trigger.ENDPOINT_CLOSED, error)

    def endpoint_stalled(self, connection: Connection) -> list[Effect]:
        return self._move(connection, Trigger.STALLED, STALLED)

    def peer_lost(self) -> list[Effect]:
        return [
            effect
            for connection in list(self.connections.values())
            for effect in self._move(connection, Trigger.PEER_LOST)
        ]

    def _dial(self, request: packets.DialRequest) -> list[Effect]:
        if request.protocol not in ("tcp", "tcp4", "tcp6"):
            error = f"dial {request.protocol}: only tcp is carried"
        elif request.random in self._dials:
            error = f"dial tcp {request.address}: this number is taken by another dial"
        else:
            error = self._guard(request.address)
        if error:
            return [_to_peer(packets.DialResponse(error, 0, request.random)), Deny(request.address, error)]
        connection = Connection(request.address, request.random, next(self._ids))
        self.connections[connection.connect_id] = connection
        self._dials[request.random] = connection
        return [Dial(connection)]

    def _move(self, connection: Connection, trigger: Trigger, error: str = "") -> list[Effect]:
        before = connection.state
        following = TRANSITIONS.get((before, trigger))
        if following is None:
            return []
        if before is State.DIALLING:
            self._dials.pop(connection.random, None)
        connection.state, actions = following
        if connection.state is State.DONE:
            self.connections.pop(connection.connect_id, None)
        return [_EFFECTS[action](connection, error) for action in actions]


def _tell_accepted(connection: Connection, _error: str) -> Effect:
    return _to_peer(packets.DialResponse("", connection.connect_id, connection.random), connection)


def _tell_refused(connection: Connection, error: str) -> Effect:
    return _to_peer(packets.DialResponse(error, 0, connection.random), connection)


def _tell_closed(connection: Connection, error: str) -> Effect:
    return _to_peer(packets.CloseResponse(error, connection.connect_id), connection)


_EFFECTS: Final[dict[Action, Callable[[Connection, str], Effect]]] = {
    Action.TELL_ACCEPTED: _tell_accepted,
    Action.TELL_REFUSED: _tell_refused,
    Action.TELL_CLOSED: _tell_closed,
    Action.STOP_DIAL: lambda connection, _error: StopDial(connection),
    Action.FORGET: lambda connection, _error: Forget(connection),
    Action.FLUSH_AND_CLOSE: lambda connection, _error: CloseEndpoint(connection, is_cut=False),
    Action.CUT: lambda connection, _error: CloseEndpoint(connection, is_cut=True),
}


def _to_peer(packet: Packet, connection: Connection | None = None) -> ToPeer:
    return ToPeer(encode_packet(packet), connection)
