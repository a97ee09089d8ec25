"""What a soak found: which connections broke without a reason, what the server did not give back, and the table."""

import json
import statistics
from dataclasses import asdict, dataclass, field
from typing import Final

# Programs on a busy machine notice and tell things late; a connection that breaks so close to a kill is its victim.
SLACK_S: Final = 3.0
# A worker that was replaced may have a few descriptors more or less than the one before it.
FEW_DESCRIPTORS: Final = 16
MIB: Final = 1024 * 1024
# What the allocators keep of a heap that was larger: of the interpreter's, a megabyte stays for one object in it.
MEMORY_KEPT: Final = 24 * MIB  # for each process
GROWTH_KEPT: Final = 4  # one part in so many


@dataclass(frozen=True, slots=True)
class Broken:
    """A connection that did not end as it should have."""

    agent: int
    began_at: float
    ended_at: float
    why: str

    @property
    def is_wrong(self) -> bool:
        """Whether bytes came that were never sent, or in another order: nothing excuses that."""
        return self.why.startswith("wrong")

    @property
    def is_refused(self) -> bool:
        return self.why.startswith("refused")


@dataclass(slots=True)
class ClientCounts:
    """What the clients of one process saw, or those of all together."""

    opened: int = 0
    whole: int = 0
    most: int = 0  # at once
    bytes_checked: int = 0
    round_trips_ms: list[float] = field(default_factory=list)
    broken: list[Broken] = field(default_factory=list)

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "ClientCounts":
        read = json.loads(text)
        return cls(**{**read, "broken": [Broken(**each) for each in read["broken"]]})

    def add(self, other: "ClientCounts") -> None:
        self.opened += other.opened
        self.whole += other.whole
        self.most += other.most
        self.bytes_checked += other.bytes_checked
        self.round_trips_ms += other.round_trips_ms
        self.broken += other.broken


class Absences:
    """When each agent lacked a stream to a server, as its process told."""

    def __init__(self) -> None:
        self._since: dict[int, float] = {}
        self._spans: dict[int, list[tuple[float, float]]] = {}

    def left(self, agent: int, at: float) -> None:
        self._since.setdefault(agent, at)

    def came(self, agent: int, at: float) -> None:
        self._spans.setdefault(agent, []).append((self._since.pop(agent, at), at))

    @property
    def count(self) -> int:
        """How many are away now."""
        return len(self._since)

    def excuse(self, broken: Broken) -> bool:
        """Whether a connection broke when its agent, or the server's end of it, was not there."""
        if broken.is_wrong:
            return False
        at = broken.ended_at
        spans = self._spans.get(broken.agent, [])
        is_away = broken.agent in self._since and self._since[broken.agent] <= at + SLACK_S
        return is_away or any(left - SLACK_S <= at <= came + SLACK_S for left, came in spans)


@dataclass(frozen=True, slots=True)
class ServerUse:
    """What the processes of the server hold together."""

    descriptors: int
    resident_bytes: int
    processes: int


@dataclass(slots=True, kw_only=True)
class SoakResult:
    """Everything that was counted, and the verdict."""

    seed: int
    minutes: float
    agents: int
    agent_processes: int
    workers: int
    clients: ClientCounts
    absences: Absences
    kills: dict[str, int]
    # Before the load and after it: with nobody connected, and with all agents but no clients.
    empty: tuple[ServerUse, ServerUse]
    with_agents: tuple[ServerUse, ServerUse]
    most_bytes: int
    idle_cpu: float  # of one core, with all agents and no connection
    busy_cpu: float
    left: dict[str, float]  # what the metrics still counted when all clients had gone
    load: str  # of the machine

    @property
    def unexcused(self) -> list[Broken]:
        return [each for each in self.clients.broken if not self.absences.excuse(each)]

    def problems(self) -> list[str]:
        """What is wrong, each with what was found; empty if nothing is."""
        found = [f"connection through agent {each.agent}: {each.why} (lived {each.ended_at - each.began_at:.1f} s)"
                 for each in self.unexcused]  # fmt: skip
        if self.clients.whole == 0:
            found.append("no connection ended as it should have")
        for who, (before, after) in (("nobody", self.empty), ("all agents", self.with_agents)):
            if after.descriptors > before.descriptors + FEW_DESCRIPTORS:
                found.append(f"with {who} connected, it had {before.descriptors} descriptors, then {after.descriptors}")
        before, after = self.empty
        kept = MEMORY_KEPT * before.processes + (self.most_bytes - before.resident_bytes) // GROWTH_KEPT
        if after.resident_bytes > before.resident_bytes + kept:
            sizes = f"{_mib(before.resident_bytes)}, then {_mib(after.resident_bytes)}"
            found.append(f"with nobody connected, the server had {sizes}")
        found += [f"{name} is {value:g} with no client left" for name, value in self.left.items() if value]
        return found

    def table(self) -> str:
        clients, broken = self.clients, self.clients.broken
        agents = self.with_agents
        refused = sum(each.is_refused for each in broken)
        cut = len(broken) - refused
        rows = {
            "agents, in processes": f"{self.agents:,}, {self.agent_processes}",
            "workers": f"{self.workers}",
            "minutes of load; seed": f"{self.minutes:g}; {self.seed}",
            "connections, most at once": f"{clients.opened:,}, {clients.most:,}",
            "ended as they should": f"{clients.whole:,}",
            "cut / refused / neither by a kill": f"{cut:,} / {refused:,} / {len(self.unexcused):,}",
            "bytes compared": f"{clients.bytes_checked / 1e9:.2f} GB",
            "wrong bytes": f"{sum(each.is_wrong for each in broken)} connections",
            "round trips, p50 / p99": _percentiles(clients.round_trips_ms),
            "killed": ", ".join(f"{count} {what}" for what, count in self.kills.items()),
            "server's descriptors with all agents, before / after": _descriptors(self.with_agents),
            "server's descriptors with nobody, before / after": _descriptors(self.empty),
            "server's memory with all agents, before / most / after": " / ".join(
                map(_mib, (agents[0].resident_bytes, self.most_bytes, agents[1].resident_bytes))
            ),
            "server's memory with nobody, before / after": " / ".join(_mib(each.resident_bytes) for each in self.empty),
            "server's processor, agents only / under load": f"{self.idle_cpu:.1%} / {self.busy_cpu:.0%} of a core",
            "load average": self.load,
        }
        return "\n".join(["| | |", "| --- | --- |", *(f"| {name} | {value} |" for name, value in rows.items())])


def _descriptors(uses: tuple[ServerUse, ServerUse]) -> str:
    return " / ".join(f"{each.descriptors:,}" for each in uses)


def _mib(size: int) -> str:
    return f"{size / MIB:.0f} MiB"


def _percentiles(values: list[float]) -> str:
    if len(values) < 2:
        return "none"
    ranked = statistics.quantiles(values, n=100)
    return f"{ranked[49]:.1f} / {ranked[98]:.1f} ms"
