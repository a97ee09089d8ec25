"""Conversations of the end that asks for connections, kept in `conversations/`, and laws about all of them."""

from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from garboard.tunnel.frontend.effects import (
    Accepted,
    Cut,
    Doubt,
    ForgetTunnel,
    FrontendEffect,
    ToAgent,
    ToFrontend,
)
from garboard.tunnel.frontend.protocol import CLOSE_TIMEOUT, FRONTEND_CUT, TOO_MANY, FrontendProtocol, TunnelQuota
from garboard.tunnel.frontend.states import TRANSITIONS, FlushProgress, Tunnel, TunnelState
from garboard.tunnel.identifiers import Identifiers
from garboard.tunnel.server.routing import AgentBackend, Backends, parse_strategies
from garboard.tunnel.wire.packets import (
    CloseRequest,
    CloseResponse,
    Data,
    DialRequest,
    DialResponse,
    Packet,
    decode_packet,
    encode_packet,
)
from tests.support.tunnel.scripts import format_packet, parse_packet, play

SCRIPTS = sorted((Path(__file__).parent / "conversations").glob("*.txt"))


class Conversation:
    """A protocol with named agents and frontends around it."""

    def __init__(self) -> None:
        self.now = 0.0
        self.protocol = FrontendProtocol(
            Backends(parse_strategies("destHost,default"), lambda _: 0), clock=lambda: self.now
        )
        self.agents: dict[str, AgentBackend] = {}
        self.frontends: dict[str, Tunnel] = {}

    def say(self, text: str) -> list[str]:
        who, _, what = text.partition(": ")
        kind, _, name = who.partition(" ")
        effects = self._frontend(name, what) if kind == "frontend" else self._agent_or_clock(kind, name, what)
        return [
            self._show(effect) for effect in effects if not isinstance(effect, Accepted | Cut | Doubt | ForgetTunnel)
        ]

    def _agent_or_clock(self, kind: str, name: str, what: str) -> list[FrontendEffect]:
        if kind == "time":
            self.now += float(name)
            return self.protocol.expire()
        if what.startswith("joins"):
            self.agents[name] = AgentBackend(name, Identifiers.parse(what.removeprefix("joins").strip()))
            self.protocol.agent_joined(self.agents[name])
            return []
        if what == "leaves":
            return self.protocol.agent_left(self.agents.pop(name))
        return self._agent(self.agents[name], parse_packet(what))

    def _agent(self, backend: AgentBackend, packet: Packet) -> list[FrontendEffect]:
        tunnel = backend.open.get(packet.connect_id) if isinstance(packet, Data) else None
        if tunnel is not None:  # a pipe takes it
            return [] if tunnel.is_over_for_frontend else [ToFrontend(tunnel, packet)]
        return self.protocol.agent_sent(backend, packet)

    def _frontend(self, name: str, what: str) -> list[FrontendEffect]:
        tunnel = self.frontends.setdefault(name, Tunnel())
        if what == "is gone":
            return self.protocol.frontend_gone(tunnel)
        if what == "stalls":
            return self.protocol.frontend_stalled(tunnel)
        return self.protocol.frontend_sent(tunnel, encode_packet(parse_packet(what)))

    def _show(self, effect: FrontendEffect) -> str:
        match effect:
            case ToAgent(backend, message):
                name = next(name for name, each in self.agents.items() if each is backend)
                return f"agent {name}: {format_packet(decode_packet(message))}"
            case ToFrontend(tunnel, packet):
                return f"frontend {self._name(tunnel)}: {format_packet(packet)}"
            case _:
                raise AssertionError(effect)

    def _name(self, tunnel: Tunnel) -> str:
        return next(name for name, each in self.frontends.items() if each is tunnel)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_conversation_goes_as_written(script: Path) -> None:
    play(script, Conversation().say)


def test_there_are_conversations() -> None:
    assert len(SCRIPTS) >= 8


def test_no_state_leads_out_of_done() -> None:
    assert not [state for state, _ in TRANSITIONS if state is TunnelState.DONE]


def test_agent_cannot_answer_the_dial_of_another() -> None:
    conversation = Conversation()
    conversation.say("agent A: joins")
    conversation.say("agent B: joins")
    conversation.say("frontend F: DIAL_REQ tcp h:1 random=5")
    assert conversation.say("agent B: DIAL_RSP id=9 random=5") == ["agent B: CLOSE_REQ id=9"]
    assert conversation.frontends["F"].state is TunnelState.DIALLING


STEPS = st.lists(
    st.sampled_from(
        [
            "agent A: joins", "agent A: leaves", "agent A: DIAL_RSP id={n} random={r}",
            "agent A: DIAL_RSP error=x random={r}", "agent A: DATA id={n} d", "agent A: CLOSE_RSP id={n}",
            "agent A: DRAIN", "frontend {f}: DIAL_REQ tcp h:1 random={r}", "frontend {f}: DATA id={n} d",
            "frontend {f}: CLOSE_REQ id={n}", "frontend {f}: DIAL_CLS random={r}", "frontend {f}: is gone",
            "frontend {f}: stalls", "time 11",
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
    conversation = Conversation()
    for step in steps:
        if step.startswith("agent") and (("joins" in step) == ("A" in conversation.agents)):
            continue
        conversation.say(step)
    for name in list(conversation.frontends):
        conversation.say(f"frontend {name}: is gone")
    conversation.say("time 100")
    assert conversation.protocol.pending_dials == 0
    assert not conversation.protocol._deadlines
    for agent in conversation.agents.values():
        assert not agent.open
        assert not agent.pending


def test_equal_dial_ids_of_two_frontends_are_sent_apart() -> None:
    conversation, numbers = Conversation(), count(1)
    conversation.say("agent A: joins")
    conversation.say("frontend F: DIAL_REQ tcp h:1 random=5")
    conversation.say("frontend G: DIAL_REQ tcp h:2 random=5")
    backend = conversation.agents["A"]
    assert [tunnel.address for tunnel in backend.pending.values()] == ["h:1", "h:2"]
    for dial_id, tunnel in list(backend.pending.items()):
        answer = DialResponse("", next(numbers), dial_id)
        [_, sent] = conversation.protocol.agent_sent(backend, answer)
        assert sent == ToFrontend(tunnel, DialResponse("", answer.connect_id, 5))


def test_second_dial_of_a_stream_is_refused() -> None:
    conversation = Conversation()
    conversation.say("agent A: joins")
    conversation.say("frontend F: DIAL_REQ tcp h:1 random=5")
    [sent] = conversation.protocol.dial(conversation.frontends["F"], DialRequest("tcp", "h:2", 6))
    assert isinstance(sent, ToFrontend)
    assert isinstance(sent.packet, DialResponse)
    assert sent.packet.error
    assert sent.packet.random == 6


def test_tunnel_that_closes_may_take_its_time_while_it_comes_further() -> None:
    now, seen = [0.0], [FlushProgress(5, 0, 0)]
    protocol = FrontendProtocol(
        Backends(parse_strategies("default"), lambda _: 0), clock=lambda: now[0], progress_of=lambda _: seen[0]
    )
    backend, tunnel = AgentBackend("A", Identifiers()), Tunnel()
    protocol.agent_joined(backend)
    protocol.dial(tunnel, DialRequest("tcp", "h:1", 5))
    protocol.agent_sent(backend, DialResponse("", 2, 5))
    protocol.frontend_closed(tunnel)

    def after(seconds: float, **changed: int) -> TunnelState:
        now[0] += seconds
        seen[0] = seen[0]._replace(**changed)
        protocol.expire()
        return tunnel.state

    assert after(60, unsent_messages=4) is TunnelState.CLOSING
    assert after(119) is TunnelState.CLOSING  # it waits for its reader, who may pause
    assert after(60, unsent_messages=0, delivered_bytes=1, queued_bytes=9) is TunnelState.CLOSING
    assert after(119, delivered_bytes=2) is TunnelState.CLOSING
    assert after(10, queued_bytes=0) is TunnelState.CLOSING
    assert after(9) is TunnelState.CLOSING
    assert after(2) is TunnelState.DONE  # nothing waits any more, and the agent does not answer


def test_tunnel_that_stands_still_while_it_closes_is_cut_and_not_ended() -> None:
    now = [0.0]
    protocol = FrontendProtocol(
        Backends(parse_strategies("default"), lambda _: 0),
        clock=lambda: now[0],
        progress_of=lambda _: FlushProgress(5, 0, 0),
    )
    backend, tunnel = AgentBackend("A", Identifiers()), Tunnel()
    protocol.agent_joined(backend)
    protocol.dial(tunnel, DialRequest("tcp", "h:1", 5))
    protocol.agent_sent(backend, DialResponse("", 2, 5))
    protocol.frontend_closed(tunnel)
    now[0] = 121.0
    cut, told, _ = protocol.expire()
    assert isinstance(cut, Cut)
    assert decode_packet(cut.message) == CloseResponse(CLOSE_TIMEOUT, 2)
    assert told == ToFrontend(tunnel, CloseResponse(CLOSE_TIMEOUT, 2))


def test_stream_that_left_a_dial_unanswered_is_chosen_last_until_it_answers() -> None:
    now = [0.0]
    protocol = FrontendProtocol(Backends(parse_strategies("default"), lambda _: 0), clock=lambda: now[0])
    old, newer, tunnel = AgentBackend("A", Identifiers()), AgentBackend("A", Identifiers()), Tunnel()
    protocol.agent_joined(old)
    protocol.agent_joined(newer)
    protocol.dial(tunnel, DialRequest("tcp", "h:1", 5))
    assert tunnel.backend is old
    now[0] = 31.0
    assert Doubt(old) in protocol.expire()
    second = Tunnel()
    protocol.dial(second, DialRequest("tcp", "h:1", 6))
    assert second.backend is newer
    protocol.agent_sent(old, DialResponse("", 2, 5))  # late, and a sign of life
    third = Tunnel()
    protocol.dial(third, DialRequest("tcp", "h:1", 7))
    assert third.backend is old


@pytest.mark.parametrize(
    ("quota", "fits"),
    [
        pytest.param(TunnelQuota(pending_per_peer=2), 2, id="dials of an agent"),
        pytest.param(TunnelQuota(pending=3), 3, id="dials in all"),
        pytest.param(TunnelQuota(open_per_peer=2), 2, id="connections of an agent"),
        pytest.param(TunnelQuota(open=3), 3, id="connections in all"),
    ],
)
def test_connections_and_dials_are_bounded(quota: TunnelQuota, fits: int) -> None:
    protocol = FrontendProtocol(Backends(parse_strategies("default"), lambda _: 0), clock=lambda: 0.0, quota=quota)
    backend = AgentBackend("A", Identifiers())
    protocol.agent_joined(backend)
    answers_dials = "open" in str(quota).replace("open_per_peer=10000", "").replace("open=40000", "")
    opened: list[Tunnel] = []

    def dial() -> str:
        tunnel = Tunnel()
        effects = protocol.dial(tunnel, DialRequest("tcp", "h:1", len(opened) + 1))
        refusals = [each.packet.error for each in effects if isinstance(each, ToFrontend)
                    and isinstance(each.packet, DialResponse)]  # fmt: skip
        if not refusals:
            opened.append(tunnel)
            if answers_dials:
                protocol.agent_sent(backend, DialResponse("", 2 * len(opened), len(opened)))
        return refusals[0] if refusals else ""

    assert [dial() for _ in range(fits)] == [""] * fits
    assert dial() == TOO_MANY
    protocol.frontend_gone(opened[0])
    if answers_dials:
        protocol.agent_sent(backend, CloseResponse("", opened[0].connect_id))
    assert dial() == ""
    protocol.agent_left(backend)
    assert (protocol.pending_dials, protocol._open) == (0, 0)


@pytest.mark.parametrize("takes_cuts", [True, False], ids=["ours", "stock"])
def test_agent_learns_that_a_client_was_cut_if_it_can(takes_cuts: bool) -> None:
    protocol = FrontendProtocol(Backends(parse_strategies("default"), lambda _: 0), clock=lambda: 0.0)
    backend, tunnel = AgentBackend("A", Identifiers()), Tunnel()
    backend.takes_cuts = takes_cuts
    protocol.agent_joined(backend)
    protocol.dial(tunnel, DialRequest("tcp", "h:1", 5))
    protocol.agent_sent(backend, DialResponse("", 2, 5))
    told, *_ = protocol.frontend_gone(tunnel, was_cut=True)
    assert isinstance(told, ToAgent)
    assert told.tunnel is tunnel  # behind what it has sent
    assert decode_packet(told.message) == (CloseResponse(FRONTEND_CUT, 2) if takes_cuts else CloseRequest(2))
    assert (tunnel.state is TunnelState.DONE) == takes_cuts
