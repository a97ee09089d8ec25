"""Conversations of the end that dials, kept in `conversations/`; the peer is called the server here."""

from itertools import count
from pathlib import Path

import pytest

from garboard.tunnel.dialer.protocol import (
    CloseEndpoint,
    Deny,
    Dial,
    DialerEffect,
    DialerProtocol,
    ForgetConnection,
    StopDial,
    ToPeer,
)
from garboard.tunnel.dialer.states import ConnectionState, EndpointConnection
from garboard.tunnel.wire import packets
from garboard.tunnel.wire.packets import decode_packet
from tests.support.tunnel.scripts import format_packet, parse_packet, play

SCRIPTS = sorted((Path(__file__).parent / "conversations").glob("*.txt"))


class Conversation:
    """A protocol whose endpoints are known by their addresses."""

    def __init__(self) -> None:
        self.protocol = DialerProtocol(count(2, 2), lambda address: "denied" if address.startswith("secret") else "")
        self.endpoints: dict[str, EndpointConnection] = {}

    def say(self, text: str) -> list[str]:
        who, _, what = text.partition(": ")
        kind, _, name = who.partition(" ")
        if kind == "endpoint":
            return self._show(self._endpoint(self.endpoints[name], what))
        if what == "is lost":
            return self._show(self.protocol.peer_lost())
        return self._server(parse_packet(what))

    def _server(self, packet: packets.Packet) -> list[str]:
        if isinstance(packet, packets.Data):
            connection = self.protocol.connections.get(packet.connect_id)
            if connection is not None and connection.state is ConnectionState.OPEN:
                return [f"endpoint {connection.address}: write {packet.data.decode()}"]
        return self._show(self.protocol.peer_sent(packet))

    def _endpoint(self, connection: EndpointConnection, what: str) -> list[DialerEffect]:
        verb, _, error = what.partition(" ")
        match verb:
            case "accepts":
                return self.protocol.dialled(connection)
            case "fails":
                return self.protocol.dial_failed(connection, error)
            case "closes":
                return self.protocol.endpoint_closed(connection)
            case "stalls":
                return self.protocol.endpoint_stalled(connection)
            case _:
                raise ValueError(what)

    def _show(self, effects: list[DialerEffect]) -> list[str]:
        return [self._text(effect) for effect in effects if not isinstance(effect, ForgetConnection)]

    def _text(self, effect: DialerEffect) -> str:
        match effect:
            case ToPeer(message):
                return f"server: {format_packet(decode_packet(message))}"
            case Dial(connection):
                self.endpoints[connection.address] = connection
                return f"endpoint {connection.address}: dial"
            case StopDial(connection):
                return f"endpoint {connection.address}: stop dialling"
            case Deny(request):
                return f"endpoint {request.address}: deny"
            case CloseEndpoint(connection, ending):
                return f"endpoint {connection.address}: {ending.value}"
            case ForgetConnection():
                raise AssertionError


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_conversation_goes_as_written(script: Path) -> None:
    play(script, Conversation().say)


def test_there_are_conversations() -> None:
    assert len(SCRIPTS) >= 4
