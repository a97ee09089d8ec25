"""Which agent carries a connection: the strategies of the stock server, over the agents that are connected.

A choice costs the same however many agents there are: they are kept sorted by how willing they are, and it is a stream
that comes, goes or changes its mind that pays for the order.
"""

from bisect import bisect_left, insort
from collections.abc import Callable
from enum import StrEnum
from operator import attrgetter
from typing import Final

from garboard.errors import InvalidValue
from garboard.tunnel.frontend.states import Backend
from garboard.tunnel.identifiers import Identifiers

Chooser = Callable[[int], int]  # a number below its argument, such as random.randrange
LEVELS: Final = 4  # of reluctance
_ARRIVAL: Final = attrgetter("arrival")


class AgentBackend(Backend):
    """The stream of an agent, with what it says about itself."""

    def __init__(self, agent_id: str, identifiers: Identifiers) -> None:
        super().__init__(f"agent {agent_id}")
        self.agent_id = agent_id
        self.identifiers = identifiers
        self.arrival = 0  # its place among all streams, given when it is added


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
        self._indexes = {strategy: _Index(choose) for strategy in strategies}
        self._arrivals = 0

    def add(self, backend: Backend) -> None:
        assert isinstance(backend, AgentBackend)
        self._arrivals += 1
        backend.arrival = self._arrivals
        backend.on_reluctance = self._moved
        for strategy, index in self._indexes.items():
            for key in _keys(strategy, backend):
                index.add(key, backend)

    def remove(self, backend: Backend) -> None:
        """Forget a stream; nothing happens if it is not there."""
        assert isinstance(backend, AgentBackend)
        backend.on_reluctance = None
        for strategy, index in self._indexes.items():
            for key in _keys(strategy, backend):
                index.remove(key, backend, backend.reluctance)

    def count(self, strategy: Strategy) -> int:
        """Keys, and not streams, as the stock metric counts."""
        return len(self._indexes[strategy].by_key)

    @property
    def is_ready(self) -> bool:
        """The first strategy alone decides, as in the stock server."""
        return bool(self._indexes[self.strategies[0]].by_key)

    def find(self, address: str) -> AgentBackend | None:
        """The agent for a destination, by the first strategy that has one."""
        for strategy in self.strategies:
            index = self._indexes[strategy]
            found = index.first_of(host_of(address)) if strategy is Strategy.DEST_HOST else index.any()
            if found is not None:
                return found
        return None

    def _moved(self, backend: Backend, before: int) -> None:
        """A stream drains, left a dial unanswered, or answers again."""
        assert isinstance(backend, AgentBackend)
        for strategy, index in self._indexes.items():
            for key in _keys(strategy, backend):
                index.move(key, backend, before)


class _Index:
    """The streams of one strategy by key, and the keys by the reluctance of the stream that speaks for each."""

    def __init__(self, choose: Chooser) -> None:
        self._choose = choose
        self.by_key: dict[str, _Streams] = {}
        self._levels = tuple(_Pool() for _ in range(LEVELS))

    def add(self, key: str, backend: AgentBackend) -> None:
        streams = self.by_key.get(key)
        if streams is None:
            streams = self.by_key[key] = _Streams()
        streams.add(backend)
        self._settle(streams)

    def remove(self, key: str, backend: AgentBackend, level: int) -> None:
        streams = self.by_key.get(key)
        if streams is not None:
            streams.remove(backend, level)
            self._settle(streams)
            if streams.speaker is None:
                del self.by_key[key]

    def move(self, key: str, backend: AgentBackend, before: int) -> None:
        streams = self.by_key[key]
        streams.remove(backend, before)
        streams.add(backend)
        self._settle(streams)

    def first_of(self, key: str) -> AgentBackend | None:
        """The oldest of the most willing streams of a key."""
        streams = self.by_key.get(key)
        return streams.most_willing() if streams is not None else None

    def any(self) -> AgentBackend | None:
        """One of the most willing, by chance."""
        for pool in self._levels:
            count = len(pool.members)
            if count:
                return pool.members[self._choose(count) if count > 1 else 0].speaker
        return None

    def _settle(self, streams: "_Streams") -> None:
        """Bring who speaks for a key in step with its streams."""
        speaker = streams.find_speaker()
        level = speaker.reluctance if speaker is not None else 0
        if streams.speaker is not None:
            self._levels[streams.level].discard(streams)
        if speaker is not None:
            self._levels[level].add(streams)
        streams.speaker, streams.level = speaker, level


class _Streams:
    """The streams of one key by their reluctance, the oldest of each first."""

    __slots__ = ("_levels", "level", "speaker")

    def __init__(self) -> None:
        self._levels: tuple[list[AgentBackend], ...] = tuple([] for _ in range(LEVELS))
        self.speaker: AgentBackend | None = None
        self.level = 0  # of the speaker, when it was found

    def add(self, backend: AgentBackend) -> None:
        insort(self._levels[backend.reluctance], backend, key=_ARRIVAL)

    def remove(self, backend: AgentBackend, level: int) -> None:
        streams = self._levels[level]
        at = bisect_left(streams, backend.arrival, key=_ARRIVAL)
        if at < len(streams) and streams[at] is backend:
            del streams[at]

    def most_willing(self) -> AgentBackend | None:
        """The first of those that neither drain nor leave dials unanswered; one that does is better than none."""
        for streams in self._levels:
            if streams:
                return streams[0]
        return None

    def find_speaker(self) -> AgentBackend | None:
        """The oldest: later streams of an agent are duplicates that it is about to close, unless it does not answer."""
        oldest = min((streams[0] for streams in self._levels if streams), key=_ARRIVAL, default=None)
        return self.most_willing() if oldest is not None and oldest.is_retired else oldest


class _Pool:
    """A set whose members are numbered, so that one can be drawn."""

    __slots__ = ("_places", "members")

    def __init__(self) -> None:
        self.members: list[_Streams] = []
        self._places: dict[_Streams, int] = {}

    def add(self, member: _Streams) -> None:
        self._places[member] = len(self.members)
        self.members.append(member)

    def discard(self, member: _Streams) -> None:
        """Forget one; the last takes its place."""
        place = self._places.pop(member)
        last = self.members.pop()
        if last is not member:
            self.members[place] = last
            self._places[last] = place


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
