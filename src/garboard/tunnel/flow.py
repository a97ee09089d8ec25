"""Bounded buffers: what waits for one slow receiver, and who is held back by it.

Every byte belongs to a `Source`, which sends no more than a bounded amount before it hears that its bytes have gone on.
A source with credit of its own waits alone. One that shares its credit with others, as every connection does on the
stream of a stock peer, would hold them back too: it may do so only while its receiver makes progress.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol

Chunk = bytes | memoryview

MAX_PAYLOAD: Final = 32 * 1024  # stock agents queue 150 packets per connection, whatever their size
TICK_S: Final = 0.05
GRACE_S: Final = 0.1  # a receiver that takes something this often makes progress
SPILL: Final = 8  # how many times its buffer a receiver without progress may fill before its time is up


class Source(Protocol):
    """Where bytes came from."""

    shares_credit: bool

    def release(self, size: int) -> None:
        """So many of its bytes have gone on: as many more may come."""


class Sink(Protocol):
    """Where the bytes of one connection go."""

    @property
    def has_room(self) -> bool: ...

    @property
    def backlog(self) -> int:
        """Bytes it took and has not sent on."""

    def push(self, chunk: Chunk) -> None: ...

    def give_up(self) -> None:
        """The receiver is stalled: it is to be closed alone."""


class Nobody:
    """The source of what we say ourselves."""

    shares_credit = False

    def release(self, size: int) -> None:
        pass


NOBODY: Final = Nobody()


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How much may wait for a receiver, and how long it may take nothing at all while others wait for it."""

    buffer_bytes: int = 4 * 1024 * 1024
    stall_s: float = 2.0


class Outflow:
    """What waits for one receiver."""

    # How every receiver begins; as defaults of the class they cost it nothing until they change.
    # The queue is made when it is needed first; each chunk with the moment since when it waits.
    queue: deque[tuple[Chunk, int, Source | None, float]] | None = None
    waited: Callable[[float], None] | None = None  # hears how long what had to wait did so
    queued_bytes = 0
    pushed = 0
    _owed_bytes = 0
    _is_spilling = False
    _delivered = -1
    _progress_at = 0.0

    def __init__(self, sink: Sink, watch: "StallWatch") -> None:
        self._sink = sink
        self._watch = watch

    @property
    def is_empty(self) -> bool:
        return not self.queue

    @property
    def holds_back(self) -> bool:
        """Whether a source that shares its credit waits for this receiver."""
        return self._owed_bytes > 0

    def put(self, chunk: Chunk, size: int, source: Source) -> None:
        """Send the chunk, now or later; `size` is what the source counts it as."""
        if not self.queue and self._sink.has_room:
            self.pushed += len(chunk)
            self._sink.push(chunk)
            source.release(size)
            return
        if self.queue is None:
            self.queue = deque()
        owed: Source | None = source
        if source.shares_credit:
            owed = self._owe(size, source)
        self.queue.append((chunk, size, owed, time.monotonic()))
        self.queued_bytes += size

    def drain(self) -> None:
        """The receiver has room again."""
        queue, sink = self.queue, self._sink
        self._is_spilling = False
        while queue and sink.has_room:
            chunk, size, owed, since = queue.popleft()
            if self.waited is not None:
                self.waited(time.monotonic() - since)
            self.queued_bytes -= size
            self.pushed += len(chunk)
            sink.push(chunk)
            self._settle(size, owed)

    def clear(self) -> None:
        """Nobody will take what waits."""
        while self.queue:
            _, size, owed, _ = self.queue.popleft()
            self._settle(size, owed)
        self.queued_bytes = 0
        if self._watch.waiting:
            self._watch.waiting.discard(self)

    def waiting(self) -> Iterator[Chunk]:
        return (each[0] for each in self.queue or ())

    def check(self, now: float) -> None:
        """Whether others wait for a receiver that takes nothing; asked by the watch while its buffer is full."""
        delivered = self.pushed - self._sink.backlog
        if self.queued_bytes < self._watch.patience.buffer_bytes:
            self._delivered = -1
            self._watch.waiting.discard(self)
        elif delivered != self._delivered:
            self._delivered = delivered
            self._progress_at = now
        elif self._is_stalled(now):
            self._watch.waiting.discard(self)
            self._sink.give_up()
        elif now - self._progress_at >= GRACE_S:
            self._spill()

    def _owe(self, size: int, source: Source) -> Source | None:
        """Release what fits in the buffer, and hold the source back for the rest."""
        if self.queued_bytes < self._watch.patience.buffer_bytes or (self._is_spilling and not self._is_overfull):
            source.release(size)
            return None
        self._owed_bytes += size
        self._watch.waiting.add(self)
        return source

    @property
    def _is_overfull(self) -> bool:
        return self.queued_bytes >= self._watch.patience.buffer_bytes * SPILL

    def _is_stalled(self, now: float) -> bool:
        waited_s = now - self._progress_at
        return waited_s >= self._watch.patience.stall_s or (self._is_overfull and waited_s >= GRACE_S)

    def _spill(self) -> None:
        """Let the others go on: this one is about to be given up, unless it takes something soon."""
        self._is_spilling = True
        queue = self.queue or deque()
        self.queue = deque((chunk, size, None, since) for chunk, size, _, since in queue)
        for _, size, owed, _ in queue:
            self._settle(size, owed)

    def _settle(self, size: int, owed: Source | None) -> None:
        if owed is not None:
            if owed.shares_credit:
                self._owed_bytes -= size
            owed.release(size)


class StallWatch:
    """Looks after the receivers of one process whose buffers are full; idle ones cost it nothing."""

    def __init__(self, patience: Patience) -> None:
        self.patience = patience
        self.waiting: set[Outflow] = set()

    def check(self, now: float) -> None:
        for outflow in list(self.waiting):
            outflow.check(now)

    def look(self) -> None:
        if self.waiting:
            self.check(time.monotonic())

    async def run(self) -> None:
        """Give up those that stall, for ever."""
        while True:
            await asyncio.sleep(TICK_S)
            self.look()
