"""The agent's conversations, kept in `conversations/`."""

from itertools import count
from pathlib import Path

import pytest

from garboard.tunnel.agent.connections import Connection
from garboard.tunnel.agent.exchange import CloseEndpoint, Dial, Effect, Exchange, StopDial, ToEndpoint, ToServer
from garboard.tunnel.packets import decode_packet, encode_packet, payload_of
from tests.tunnel.scripts import format_packet, parse_packet, play

SCRIPTS = sorted((Path(__file__).parent / "conversations").glob("*.txt"))


class Stage:
    """An exchange whose endpoints are known by their addresses."""

    def __init__(self) -> None:
        self.exchange = Exchange(count(2, 2))
        self.endpoints: dict[str, Connection] = {}

    def say(self, text: str) -> list[str]:
        who, _, what = text.partition(": ")
        kind, _, name = who.partition(" ")
        effects = self._endpoint(self.endpoints[name], what) if kind == "endpoint" else self._server(what)
        return [self._show(effect) for effect in effects]

    def _server(self, what: str) -> list[Effect]:
        if what == "is lost":
            return self.exchange.server_lost()
        return self.exchange.server_said(encode_packet(parse_packet(what)))

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

    def _show(self, effect: Effect) -> str:
        match effect:
            case ToServer(message):
                return f"server: {format_packet(decode_packet(message))}"
            case Dial(connection):
                self.endpoints[connection.address] = connection
                return f"endpoint {connection.address}: dial"
            case StopDial(connection):
                return f"endpoint {connection.address}: stop dialling"
            case ToEndpoint(connection, message):
                return f"endpoint {connection.address}: write {bytes(payload_of(message)).decode()}"
            case CloseEndpoint(connection, is_cut):
                return f"endpoint {connection.address}: {'cut' if is_cut else 'flush and close'}"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_conversation_goes_as_written(script: Path) -> None:
    play(script, Stage().say)


def test_there_are_conversations() -> None:
    assert len(SCRIPTS) >= 4
