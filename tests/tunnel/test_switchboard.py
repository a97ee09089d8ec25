"""Conversations of the end that asks for connections, kept in `entry_conversations/`, and laws about all of them."""

from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from garboard.tunnel.identifiers import Identifiers
from garboard.tunnel.packets import Data, DialRequest, DialResponse, Packet, decode_packet, encode_packet
from garboard.tunnel.server.routing import AgentBackend, Backends, parse_strategies
from garboard.tunnel.switchboard import Accepted, Cut, Effect, Forget, Switchboard, ToAgent, ToFront
from garboard.tunnel.tunnels import TRANSITIONS, State, Tunnel
from tests.tunnel.scripts import format_packet, parse_packet, play

SCRIPTS = sorted((Path(__file__).parent / "entry_conversations").glob("*.txt"))


class Stage:
    """A switchboard with named agents and front ends around it."""

    def __init__(self) -> None:
        self.now = 0.0
        self.board = Switchboard(Backends(parse_strategies("destHost,default"), lambda _: 0), clock=lambda: self.now)
        self.agents: dict[str, AgentBackend] = {}
        self.fronts: dict[str, Tunnel] = {}

    def say(self, text: str) -> list[str]:
        who, _, what = text.partition(": ")
        kind, _, name = who.partition(" ")
        effects = self._front(name, what) if kind == "front" else self._agent_or_clock(kind, name, what)
        return [self._show(effect) for effect in effects if not isinstance(effect, Accepted | Cut | Forget)]

    def _agent_or_clock(self, kind: str, name: str, what: str) -> list[Effect]:
        if kind == "time":
            self.now += float(name)
            return self.board.expire()
        if what.startswith("joins"):
            self.agents[name] = AgentBackend(name, Identifiers.parse(what.removeprefix("joins").strip()))
            self.board.agent_joined(self.agents[name])
            return []
        if what == "leaves":
            return self.board.agent_left(self.agents.pop(name))
        return self._agent(self.agents[name], parse_packet(what))

    def _agent(self, backend: AgentBackend, packet: Packet) -> list[Effect]:
        tunnel = backend.open.get(packet.connect_id) if isinstance(packet, Data) else None
        if tunnel is not None:  # a pipe takes it
            return [] if tunnel.is_over_for_front else [ToFront(tunnel, packet)]
        return self.board.agent_said(backend, packet)

    def _front(self, name: str, what: str) -> list[Effect]:
        tunnel = self.fronts.setdefault(name, Tunnel())
        if what == "is gone":
            return self.board.front_gone(tunnel)
        if what == "stalls":
            return self.board.front_stalled(tunnel)
        return self.board.front_said(tunnel, encode_packet(parse_packet(what)))

    def _show(self, effect: Effect) -> str:
        match effect:
            case ToAgent(backend, message):
                name = next(name for name, each in self.agents.items() if each is backend)
                return f"agent {name}: {format_packet(decode_packet(message))}"
            case ToFront(tunnel, packet):
                return f"front {self._name(tunnel)}: {format_packet(packet)}"
            case _:
                raise AssertionError(effect)

    def _name(self, tunnel: Tunnel) -> str:
        return next(name for name, each in self.fronts.items() if each is tunnel)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_conversation_goes_as_written(script: Path) -> None:
    play(script, Stage().say)


def test_there_are_conversations() -> None:
    assert len(SCRIPTS) >= 8


def test_no_state_leads_out_of_done() -> None:
    assert not [state for state, _ in TRANSITIONS if state is State.DONE]


def test_agent_cannot_answer_the_dial_of_another() -> None:
    stage = Stage()
    stage.say("agent A: joins")
    stage.say("agent B: joins")
    stage.say("front F: DIAL_REQ tcp h:1 random=5")
    assert stage.say("agent B: DIAL_RSP id=9 random=5") == ["agent B: CLOSE_REQ id=9"]
    assert stage.fronts["F"].state is State.DIALLING


STEPS = st.lists(
    st.sampled_from(
        [
            "agent A: joins", "agent A: leaves", "agent A: DIAL_RSP id={n} random={r}",
            "agent A: DIAL_RSP error=x random={r}", "agent A: DATA id={n} d", "agent A: CLOSE_RSP id={n}",
            "agent A: DRAIN", "front {f}: DIAL_REQ tcp h:1 random={r}", "front {f}: DATA id={n} d",
            "front {f}: CLOSE_REQ id={n}", "front {f}: DIAL_CLS random={r}", "front {f}: is gone",
            "front {f}: stalls", "time 11",
        ]
    ).flatmap(
        lambda text: st.builds(
            lambda n, r, f: text.format(n=n, r=r, f=f), st.integers(0, 3), st.integers(1, 3), st.sampled_from("FGH")
        )
    ),
    max_size=40,
)  # fmt: skip


@given(STEPS)
@settings(max_examples=200)
def test_whatever_is_said_nothing_is_left_behind(steps: list[str]) -> None:
    stage = Stage()
    for step in steps:
        if step.startswith("agent") and (("joins" in step) == ("A" in stage.agents)):
            continue
        stage.say(step)
    for name in list(stage.fronts):
        stage.say(f"front {name}: is gone")
    stage.say("time 100")
    assert stage.board.pending_dials == 0
    assert not stage.board._deadlines
    for agent in stage.agents.values():
        assert not agent.open
        assert not agent.pending


def test_equal_dial_ids_of_two_front_ends_are_told_apart() -> None:
    stage, numbers = Stage(), count(1)
    stage.say("agent A: joins")
    stage.say("front F: DIAL_REQ tcp h:1 random=5")
    stage.say("front G: DIAL_REQ tcp h:2 random=5")
    backend = stage.agents["A"]
    assert [tunnel.address for tunnel in backend.pending.values()] == ["h:1", "h:2"]
    for dial_id, tunnel in list(backend.pending.items()):
        answer = DialResponse("", next(numbers), dial_id)
        [_, told] = stage.board.agent_said(backend, answer)
        assert told == ToFront(tunnel, DialResponse("", answer.connect_id, 5))


def test_second_dial_of_a_stream_is_refused() -> None:
    stage = Stage()
    stage.say("agent A: joins")
    stage.say("front F: DIAL_REQ tcp h:1 random=5")
    [told] = stage.board.dial(stage.fronts["F"], DialRequest("tcp", "h:2", 6))
    assert isinstance(told, ToFront)
    assert isinstance(told.packet, DialResponse)
    assert told.packet.error
    assert told.packet.random == 6
