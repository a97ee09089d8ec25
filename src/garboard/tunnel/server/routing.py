"""Which agent carries a connection: the strategies of the stock server, over the agents that are connected."""

from collections.abc import Callable
from enum import StrEnum

from garboard.errors import InvalidValue
from garboard.tunnel.identifiers import Identifiers
from garboard.tunnel.tunnels import Backend

Chooser = Callable[[int], int]  # a number below its argument, such as random.randrange


class AgentBackend(Backend):
    """The stream of an agent, with what it says about itself."""

    def __init__(self, agent_id: str, identifiers: Identifiers) -> None:
        super().__init__(f"agent {agent_id}")
        self.agent_id = agent_id
        self.identifiers = identifiers


class Strategy(StrEnum):
    DEFAULT = "default"
    DEST_HOST = "destHost"
    DEFAULT_ROUTE = "defaultRoute"


def parse_strategies(text: str) -> tuple[Strategy, ...]:
    """A comma list whose order is the priority."""
    try:
        return tuple(Strategy(word) for word in text.split(","))
    except ValueError:
        known = ", ".join(Strategy)
        raise InvalidValue(f"{text!r} is not a list of proxy strategies", hint=f"known are {known}") from None


class Backends:
    """The connected agents, indexed as the strategies look them up; streams of one agent in the order they came."""

    def __init__(self, strategies: tuple[Strategy, ...], choose: Chooser) -> None:
        self.strategies = strategies
        self._choose = choose
        self._indexes: dict[Strategy, dict[str, list[AgentBackend]]] = {strategy: {} for strategy in strategies}

    def add(self, backend: Backend) -> None:
        assert isinstance(backend, AgentBackend)
        for strategy, index in self._indexes.items():
            for key in _keys(strategy, backend):
                index.setdefault(key, []).append(backend)

    def remove(self, backend: Backend) -> None:
        assert isinstance(backend, AgentBackend)
        for strategy, index in self._indexes.items():
            for key in _keys(strategy, backend):
                streams = index.get(key, [])
                if backend in streams:
                    streams.remove(backend)
                if not streams:
                    index.pop(key, None)

    def count(self, strategy: Strategy) -> int:
        """Keys, and not streams, as the stock metric counts."""
        return len(self._indexes[strategy])

    @property
    def is_ready(self) -> bool:
        """The first strategy alone decides, as in the stock server."""
        return bool(self._indexes[self.strategies[0]])

    def find(self, address: str) -> AgentBackend | None:
        """The agent for a destination, by the first strategy that has one."""
        for strategy in self.strategies:
            index = self._indexes[strategy]
            if strategy is Strategy.DEST_HOST:
                found = _first_willing(index.get(host_of(address), []))
            else:
                found = self._any_willing(index)
            if found is not None:
                return found
        return None

    def _any_willing(self, index: dict[str, list[AgentBackend]]) -> AgentBackend | None:
        if not index:
            return None
        # Later streams of an agent are duplicates that it is about to close.
        oldest = [streams[0] for streams in index.values()]
        if len(oldest) == 1:
            return oldest[0]
        start = self._choose(len(oldest))
        return _first_willing(oldest[start:] + oldest[:start])


def _first_willing(backends: list[AgentBackend]) -> AgentBackend | None:
    """The first that does not drain; one that does is better than none."""
    return next((each for each in backends if not each.is_draining), backends[0] if backends else None)


def _keys(strategy: Strategy, backend: AgentBackend) -> frozenset[str]:
    if strategy is Strategy.DEST_HOST:
        return backend.identifiers.hosts
    if strategy is Strategy.DEFAULT_ROUTE and not backend.identifiers.is_default_route:
        return frozenset()
    return frozenset({backend.agent_id})


def host_of(address: str) -> str:
    """The destination without its port and brackets; otherwise as it was written."""
    if address.startswith("["):
        return address[1:].partition("]")[0]
    host, colon, _ = address.rpartition(":")
    return host if colon and ":" not in host else address
