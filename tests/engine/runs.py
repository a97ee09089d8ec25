"""A run in memory: its folder, and the codec of the requests that tests make."""

from dataclasses import dataclass, field
from datetime import UTC, datetime

from garboard.engine import Executor, Eyes, Hands, Journal, Plan, PlanCodec, RunHeader, RunRecord, read_run
from garboard.engine.before import digest_of
from garboard.engine.runs import ClusterPlace
from tests.engine.actions import Wish

CODEC = PlanCodec((Wish,))


@dataclass
class MemoryRun:
    name: str = "run-1"
    data: bytes = b""
    contents: dict[str, bytes] = field(default_factory=dict)

    def append(self, data: bytes, *, is_lasting: bool) -> None:
        self.data += data

    def lines(self) -> bytes:
        return self.data

    def keep(self, data: bytes) -> str:
        self.contents[digest_of(data)] = data
        return digest_of(data)

    def kept(self, sha256: str) -> bytes:
        return self.contents[sha256]

    def drop_kept(self) -> None:
        self.contents.clear()

    @property
    def record(self) -> RunRecord:
        found = read_run(self.data, CODEC)
        assert found is not None
        return found


def begin(plan: Plan, eyes: Eyes, cluster: ClusterPlace = "local") -> tuple[MemoryRun, Journal]:
    store = MemoryRun()
    header = RunHeader(run="", command="init", started_at=datetime(2026, 1, 2, tzinfo=UTC), cluster=cluster)
    return store, Journal.begin_run(store, CODEC, eyes, header, plan)


def carried_out(plan: Plan, hands: Hands, eyes: Eyes, cluster: ClusterPlace = "local") -> MemoryRun:
    """Carry a plan out with a journal that is left open."""
    store, journal = begin(plan, eyes, cluster)
    Executor(hands, recorder=journal).execute(plan)
    return store
