import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garboard.errors import InvalidValue
from garboard.tunnel.identifiers import Identifiers
from garboard.tunnel.server import routing
from garboard.tunnel.server.routing import AgentBackend, Backends, Strategy, host_of, parse_strategies


def backends(strategies: str, *agents: tuple[str, str], start: int = 0) -> tuple[Backends, list[AgentBackend]]:
    index = Backends(parse_strategies(strategies), lambda _: start)
    made = [AgentBackend(agent_id, Identifiers.parse(text)) for agent_id, text in agents]
    for backend in made:
        index.add(backend)
    return index, made


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("10.0.0.1:80", "10.0.0.1"),
        ("[fd00::1]:80", "fd00::1"),
        ("name.example:443", "name.example"),
        ("fd00::1", "fd00::1"),
        ("name", "name"),
    ],
)
def test_host_is_the_address_without_port_and_brackets(address: str, host: str) -> None:
    assert host_of(address) == host


def test_destination_host_finds_the_agent_that_named_it_and_falls_back_in_order() -> None:
    index, (a, b) = backends("destHost,defaultRoute", ("a", "ipv4=10.0.0.1&host=x"), ("b", "default-route=true"))
    assert index.find("10.0.0.1:80") is a
    assert index.find("x:80") is a
    assert index.find("X:80") is b
    index.remove(b)
    assert index.find("y:80") is None


def test_default_takes_the_oldest_stream_of_an_agent_and_avoids_draining_ones() -> None:
    index, (a, later, b) = backends("default", ("a", ""), ("a", ""), ("b", ""))
    assert index.find("h:1") is a
    a.is_draining = True
    assert index.find("h:1") is b
    b.is_draining = True
    assert index.find("h:1") is a
    index.remove(a)
    assert index.find("h:1") is later


@pytest.mark.parametrize("strategy", ["default", "destHost"])
def test_newer_stream_of_an_agent_is_preferred_only_when_the_older_left_a_dial_unanswered(strategy: str) -> None:
    index, (old, newer) = backends(strategy, ("a", "host=h"), ("a", "host=h"))
    assert index.find("h:1") is old
    old.is_retired = True
    assert index.find("h:1") is newer
    newer.is_draining = True
    assert index.find("h:1") is newer
    index.remove(newer)
    assert index.find("h:1") is old  # better than none


def test_agent_that_answers_comes_before_one_that_does_not() -> None:
    index, (silent, other) = backends("default", ("a", ""), ("b", ""))
    silent.is_retired = True
    assert index.find("h:1") is other
    other.is_draining = True
    assert index.find("h:1") is other


def test_readiness_asks_the_first_strategy_only_and_counts_are_of_names() -> None:
    index, _ = backends("destHost,default", ("a", ""), ("a", ""))
    assert not index.is_ready
    assert index.count(Strategy.DEFAULT) == 1
    assert index.count(Strategy.DEST_HOST) == 0


def test_two_streams_of_one_agent_leave_one_after_another() -> None:
    index, (first, second) = backends("default", ("a", ""), ("a", ""))
    index.remove(first)
    index.remove(first)
    assert index.find("h:1") is second
    index.remove(second)
    assert index.find("h:1") is None


@pytest.mark.parametrize("text", ["", "nearest", "default,", "Default"])
def test_unknown_strategies_are_refused(text: str) -> None:
    with pytest.raises(InvalidValue):
        parse_strategies(text)


MANY = 10_000
MOODS: dict[str, Callable[[list[AgentBackend]], None]] = {
    "all willing": lambda agents: None,
    "all but one drain": lambda agents: drain(agents[:-1]),
    "all drain": lambda agents: drain(agents),
    "all but one left a dial unanswered": lambda agents: retire(agents[1:]),
    "all left a dial unanswered": lambda agents: retire(agents),
}


def drain(agents: list[AgentBackend]) -> None:
    for each in agents:
        each.is_draining = True


def retire(agents: list[AgentBackend]) -> None:
    for each in agents:
        each.is_retired = True


def work_of(call: Callable[[], object]) -> int:
    """How many instructions of the module a call takes; nothing of it depends on the machine, nor on other tests."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        if frame.f_code.co_filename != routing.__file__:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("mood", MOODS)
@pytest.mark.parametrize("strategies", ["default", "defaultRoute", "destHost", "destHost,defaultRoute,default"])
def test_choice_takes_the_same_work_with_10_and_with_10000_agents(strategies: str, mood: str) -> None:
    identifiers = Identifiers.parse("host=h&default-route=true")
    index, work = Backends(parse_strategies(strategies), lambda count: count // 2), []
    made: list[AgentBackend] = []
    for count in (10, MANY):
        for number in range(len(made), count):
            made.append(AgentBackend(f"a{number}", identifiers))
            index.add(made[-1])
        MOODS[mood](made)
        assert index.find("h:1") is not None
        work.append(work_of(lambda: index.find("h:1")))
        for each in made:
            each.is_draining = each.is_retired = False
    assert work[0] == work[1] > 0


class PlainBackends:
    """The rules of the choice, read off the list of all streams: what `Backends` must not differ from."""

    def __init__(self, strategies: str) -> None:
        self.strategies = parse_strategies(strategies)
        self.streams: list[AgentBackend] = []

    def candidates(self, host: str) -> list[AgentBackend]:
        """Those that may be chosen, by the first strategy that has any."""
        for strategy in self.strategies:
            found = self._named(host) if strategy is Strategy.DEST_HOST else self._speaking(strategy)
            if found:
                return found
        return []

    def _named(self, host: str) -> list[AgentBackend]:
        named = [each for each in self.streams if host in each.identifiers.hosts]
        return [min(named, key=lambda each: each.reluctance)] if named else []

    def _speaking(self, strategy: Strategy) -> list[AgentBackend]:
        by_agent: dict[str, list[AgentBackend]] = {}
        for each in self.streams:
            if strategy is Strategy.DEFAULT or each.identifiers.is_default_route:
                by_agent.setdefault(each.agent_id, []).append(each)
        speaking = [
            min(streams, key=lambda each: each.reluctance) if streams[0].is_retired else streams[0]
            for streams in by_agent.values()
        ]
        least = min((each.reluctance for each in speaking), default=0)
        return [each for each in speaking if each.reluctance == least]


STEPS = st.one_of(
    st.tuples(st.just("add"), st.sampled_from("abc"), st.sampled_from(["", "host=h", "host=h&host=i&default-route=1"])),
    st.tuples(st.sampled_from(["remove", "drain", "retire", "revive"]), st.integers(0, 5), st.none()),
)
STRATEGIES = st.sampled_from(["default", "destHost", "defaultRoute,default", "destHost,defaultRoute,default"])


@given(STRATEGIES, st.lists(STEPS, max_size=25))
def test_choice_is_what_the_rules_say_whatever_happened_before(strategies: str, steps: list[Any]) -> None:
    plain = PlainBackends(strategies)
    number = 0
    index = Backends(plain.strategies, lambda count: number % count)
    for what, which, text in steps:
        if what == "add":
            plain.streams.append(AgentBackend(which, Identifiers.parse(text)))
            index.add(plain.streams[-1])
        elif which < len(plain.streams):
            change(index, plain.streams, what, plain.streams[which])
        for host in ("h", "i", "none"):
            chosen: set[AgentBackend | None] = set()
            for number in range(max(len(plain.streams), 1)):  # noqa: B007  # the chooser reads it
                chosen.add(index.find(f"{host}:1"))
            allowed: set[AgentBackend | None] = {*plain.candidates(host)}
            assert chosen == (allowed or {None})


def change(index: Backends, streams: list[AgentBackend], what: str, stream: AgentBackend) -> None:
    if what == "remove":
        index.remove(stream)
        streams.remove(stream)
    elif what == "drain":
        stream.is_draining = True
    else:
        stream.is_retired = what == "retire"
