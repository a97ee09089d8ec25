"""A run in memory: its folder, and the codec of the requests and gates that tests make."""

from dataclasses import dataclass, field
from datetime import UTC, datetime

from garboard.engine import (
    Executor,
    Interpreters,
    Journal,
    Observers,
    Plan,
    PlanCodec,
    RunHeader,
    RunRecord,
    Tagged,
    read_run,
)
from garboard.engine.journal import ClusterPlace
from garboard.engine.pre_image import digest_of
from garboard.phases.gates import cluster_version
from tests.support.engine.actions import Wish

CODEC = PlanCodec((Tagged("wish", Wish), *cluster_version.JOURNAL_TYPES))


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


def begin(
    plan: Plan, observers: Observers, cluster: ClusterPlace = "local", *, is_undoable: bool = True
) -> tuple[MemoryRun, Journal]:
    store = MemoryRun()
    started_at = datetime(2026, 1, 2, tzinfo=UTC)
    header = RunHeader(run="", command="init", started_at=started_at, cluster=cluster, is_undoable=is_undoable)
    return store, Journal.begin_run(store, CODEC, observers, header, plan)


def carried_out(
    plan: Plan,
    interpreters: Interpreters,
    observers: Observers,
    cluster: ClusterPlace = "local",
    *,
    is_undoable: bool = True,
) -> MemoryRun:
    """Carry a plan out with a journal that is left open."""
    store, journal = begin(plan, observers, cluster, is_undoable=is_undoable)
    Executor(interpreters, recorder=journal, observers=observers).execute(plan)
    return store


def cut(run: MemoryRun, lines: int) -> None:
    """Make the journal end after that many lines, as if the process had been killed then."""
    run.data = b"".join(run.data.splitlines(keepends=True)[:lines])
