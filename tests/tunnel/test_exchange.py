"""Conversations of the end that dials, kept in `exit_conversations/`; the peer is called the server here."""

from itertools import count
from pathlib import Path

import pytest

from garboard.tunnel import packets
from garboard.tunnel.connections import Connection, State
from garboard.tunnel.exchange import CloseEndpoint, Deny, Dial, Effect, Exchange, Forget, StopDial, ToPeer
from garboard.tunnel.packets import decode_packet
from tests.tunnel.scripts import format_packet, parse_packet, play

SCRIPTS = sorted((Path(__file__).parent / "exit_conversations").glob("*.txt"))


class Stage:
    """An exchange whose endpoints are known by their addresses."""

    def __init__(self) -> None:
        self.exchange = Exchange(count(2, 2), lambda address: "denied" if address.startswith("secret") else "")
        self.endpoints: dict[str, Connection] = {}

    def say(self, text: str) -> list[str]:
        who, _, what = text.partition(": ")
        kind, _, name = who.partition(" ")
        if kind == "endpoint":
            return self._show(self._endpoint(self.endpoints[name], what))
        if what == "is lost":
            return self._show(self.exchange.peer_lost())
        return self._server(parse_packet(what))

    def _server(self, packet: packets.Packet) -> list[str]:
        if isinstance(packet, packets.Data):
            connection = self.exchange.connections.get(packet.connect_id)
            if connection is not None and connection.state is State.OPEN:
                return [f"endpoint {connection.address}: write {packet.data.decode()}"]
        return self._show(self.exchange.peer_said(packet))

    def _endpoint(self, connection: Connection, what: str) -> list[Effect]:
        verb, _, error = what.partition(" ")
        match verb:
            case "accepts":
                return self.exchange.dialled(connection)
            case "fails":
                return self.exchange.dial_failed(connection, error)
            case "closes":
                return self.exchange.endpoint_closed(connection)
            case "stalls":
                return self.exchange.endpoint_stalled(connection)
        raise ValueError(what)

    def _show(self, effects: list[Effect]) -> list[str]:
        return [self._text(effect) for effect in effects if not isinstance(effect, Forget)]

    def _text(self, effect: Effect) -> str:
        match effect:
            case ToPeer(message):
                return f"server: {format_packet(decode_packet(message))}"
            case Dial(connection):
                self.endpoints[connection.address] = connection
                return f"endpoint {connection.address}: dial"
            case StopDial(connection):
                return f"endpoint {connection.address}: stop dialling"
            case Deny(address):
                return f"endpoint {address}: deny"
            case CloseEndpoint(connection, is_cut):
                return f"endpoint {connection.address}: {'cut' if is_cut else 'flush and close'}"
            case Forget():
                raise AssertionError


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_conversation_goes_as_written(script: Path) -> None:
    play(script, Stage().say)


def test_there_are_conversations() -> None:
    assert len(SCRIPTS) >= 4
