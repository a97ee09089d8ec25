import pytest

from garboard.errors import InvalidValue
from garboard.tunnel.identifiers import Identifiers
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
