"""The agent's protocol on one Connect stream without I/O: packets of the server in, packets and deeds out.

Dialling, sockets and buffers are left to the modules around it.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from garboard.tunnel import packets
from garboard.tunnel.agent.connections import TRANSITIONS, Action, Connection, State, Trigger
from garboard.tunnel.packets import Packet, decode_packet, encode_packet, peek_data

DRAIN: Final = encode_packet(packets.Drain())


class ToServer(NamedTuple):
    """Send to the server, behind what the connection has sent before; without one as soon as possible."""

    message: bytes
    connection: Connection | None


class Dial(NamedTuple):
    connection: Connection


class StopDial(NamedTuple):
    connection: Connection


class ToEndpoint(NamedTuple):
    """A DATA packet as the server sent it: its payload goes to the endpoint."""

    connection: Connection
    message: bytes


class CloseEndpoint(NamedTuple):
    """Close the socket, after what waits for it has been written unless the connection is cut."""

    connection: Connection
    is_cut: bool


Effect = ToServer | Dial | StopDial | ToEndpoint | CloseEndpoint


class Exchange:
    """The connections of one stream; `ids` gives every connection of the process another number."""

    def __init__(self, ids: Iterator[int]) -> None:
        self._ids = ids
        self.connections: dict[int, Connection] = {}  # that are not DONE, by connectID

    def server_said(self, message: bytes) -> list[Effect]:
        """One packet of the server. Raises `BadWire`."""
        quick = peek_data(message)
        if quick is not None:
            return self._data(quick[0], message)
        match decode_packet(message):
            case packets.Data(connect_id):
                return self._data(connect_id, message)
            case packets.DialRequest() as request:
                return self._dial(request)
            case packets.CloseRequest(connect_id):
                connection = self.connections.get(connect_id)
                if connection is None or connection.state is not State.OPEN:
                    return [_to_server(packets.CloseResponse("Unknown connectID", connect_id))]
                return self._move(connection, Trigger.CLOSE_ASKED)
            case packets.CloseDial(random):
                return self._cancel_dial(random)
        return []  # stock agents ignore the rest as well

    def dialled(self, connection: Connection) -> list[Effect]:
        return self._move(connection, Trigger.DIALLED)

    def dial_failed(self, connection: Connection, error: str) -> list[Effect]:
        return self._move(connection, Trigger.DIAL_FAILED, error)

    def endpoint_closed(self, connection: Connection, error: str = "") -> list[Effect]:
        """The endpoint sends no more: what it sent before goes first."""
        return self._move(connection, Trigger.ENDPOINT_CLOSED, error)

    def endpoint_stalled(self, connection: Connection) -> list[Effect]:
        error = "closed alone: the endpoint took no data while the other connections waited"
        return self._move(connection, Trigger.STALLED, error)

    def server_lost(self) -> list[Effect]:
        return [
            effect
            for connection in list(self.connections.values())
            for effect in self._move(connection, Trigger.SERVER_LOST)
        ]

    def _data(self, connect_id: int, message: bytes) -> list[Effect]:
        connection = self.connections.get(connect_id)
        if connection is not None and connection.state is State.OPEN:
            return [ToEndpoint(connection, message)]
        return [_to_server(packets.CloseResponse("unrecognized connectID", connect_id))]

    def _dial(self, request: packets.DialRequest) -> list[Effect]:
        if request.protocol not in ("tcp", "tcp4", "tcp6"):
            error = f"dial {request.protocol}: only tcp is carried"
            return [_to_server(packets.DialResponse(error, 0, request.random))]
        connection = Connection(request.address, request.random, next(self._ids))
        self.connections[connection.connect_id] = connection
        return [Dial(connection)]

    def _cancel_dial(self, random: int) -> list[Effect]:
        dials = (each for each in self.connections.values() if each.random == random)
        connection = next((each for each in dials if each.state is State.DIALLING), None)
        return self._move(connection, Trigger.DIAL_CANCELLED) if connection else []

    def _move(self, connection: Connection, trigger: Trigger, error: str = "") -> list[Effect]:
        following = TRANSITIONS.get((connection.state, trigger))
        if following is None:
            return []
        connection.state, actions = following
        if connection.state is State.DONE:
            self.connections.pop(connection.connect_id, None)
        return [_act(connection, action, error) for action in actions]


def _act(connection: Connection, action: Action, error: str) -> Effect:
    match action:
        case Action.TELL_ACCEPTED:
            answer: Packet = packets.DialResponse("", connection.connect_id, connection.random)
        case Action.TELL_REFUSED:
            answer = packets.DialResponse(error, 0, connection.random)
        case Action.TELL_CLOSED:
            answer = packets.CloseResponse(error, connection.connect_id)
        case Action.STOP_DIAL:
            return StopDial(connection)
        case Action.FLUSH_AND_CLOSE | Action.CUT:
            return CloseEndpoint(connection, is_cut=action is Action.CUT)
    return _to_server(answer, connection)


def _to_server(packet: Packet, connection: Connection | None = None) -> ToServer:
    return ToServer(encode_packet(packet), connection)
