"""Bounded buffers: what waits for one slow receiver, and who is held back by it.

Every byte belongs to a `ByteSource`, which sends no more than a bounded amount before its bytes are released. A source
with credit of its own waits alone. One that shares its credit with others, as every connection does on the stream of a
stock peer, would hold them back too: it may do so only while its receiver makes progress.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol

Chunk = bytes | memoryview

log = logging.getLogger("garboard.tunnel")

MAX_PAYLOAD: Final = 32 * 1024  # stock agents queue 150 packets per connection, whatever their size
TICK_S: Final = 0.05
LONGEST_TICK_S: Final = 2 * TICK_S
GRACE_S: Final = 0.1  # a receiver that takes something this often makes progress
FLUSH_TICK_S: Final = 0.25
SHED_TICK_S: Final = 2.0  # a receiver that took nothing between two looks is stalled
# What a receiver holds beside its queue, which forms when that is full: the buffer of its socket.
BESIDE_QUEUE: Final = 256 * 1024
SPILL: Final = 8  # a receiver without progress may fill so many times its buffer before others wait for it again


class ByteSource(Protocol):
    """Where bytes came from."""

    shares_credit: bool

    def release(self, size: int) -> None:
        """So many of its bytes have gone on: as many more may come."""


class ByteSink(Protocol):
    """Where the bytes of one connection go."""

    takes_in_steps: bool  # whether it shows that it takes something only after it has taken much

    @property
    def has_room(self) -> bool:
        """Whether it takes a chunk now."""

    @property
    def backlog(self) -> int:
        """Bytes it took that have not come to its peer, as far as can be seen."""

    def push(self, chunk: Chunk) -> None: ...

    def give_up(self) -> None:
        """The receiver is stalled: it is to be closed alone."""


class NoSource:
    """The source of packets that come from this end itself: nothing waits for their release."""

    shares_credit = False

    def release(self, size: int) -> None:
        pass


NO_SOURCE: Final = NoSource()


class NoSink:
    """In place of a receiver that is gone."""

    takes_in_steps = False
    has_room = False
    backlog = 0

    def push(self, chunk: Chunk) -> None:
        pass

    def give_up(self) -> None:
        pass


NO_SINK: Final = NoSink()


class Flushing(Protocol):
    """A socket that is to end once all that was given to it is written."""

    def check_flush(self, now: float) -> None:
        """End it if everything is written; give it up if its peer has taken nothing for long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StallPolicy:
    """How much may wait for a receiver, and how long it may take nothing at all while others wait for it."""

    buffer_bytes: int = 4 * 1024 * 1024
    # Longer than the ten seconds after which an API server itself gives up a connection that its own client does not
    # read: what a stock server would have carried is not cut by ours.
    stall_s: float = 15.0
    # A Go peer gives credit once a quarter of its window is read, which may be 4 MiB: a slow reader has to get there.
    step_stall_s: float = 120.0
    most_bytes: int = 256 * 1024 * 1024  # for all receivers together: half of what our manifests let a program have


class Outflow:
    """What waits for one receiver."""

    # How every receiver begins; as defaults of the class they cost it nothing until they change.
    # The queue is made when it is needed first; each chunk with the moment since when it waits.
    queue: deque[tuple[Chunk, int, ByteSource | None, float]] | None = None
    waited: Callable[[float], None] | None = None  # called with the seconds that a chunk had to wait
    queued_bytes = 0
    pushed = 0
    _owed_bytes = 0
    _is_spilling = False
    _delivered: int | None = None
    _progress_at = 0.0

    def __init__(self, sink: ByteSink, watch: "StallWatch") -> None:
        self._sink: ByteSink = sink
        self.watch = watch

    @property
    def is_empty(self) -> bool:
        return not self.queue

    @property
    def holds_back(self) -> bool:
        """Whether a source that shares its credit waits for this receiver."""
        return self._owed_bytes > 0

    def put(self, chunk: Chunk, size: int, source: ByteSource) -> None:
        """Send the chunk, now or later; `size` is what the source counts it as."""
        if not self.queue and self._sink.has_room:
            self.pushed += len(chunk)
            self._sink.push(chunk)
            source.release(size)
            return
        if self.queue is None:
            self.queue = deque()
        if not self.queue:
            self.watch.hold(self)
        owed: ByteSource | None = source
        if source.shares_credit:
            owed = self._owe(size, source)
        self.queue.append((chunk, size, owed, time.monotonic()))
        self.queued_bytes += size
        self.watch.queued_bytes += size

    def drain(self) -> None:
        """The receiver has room again."""
        queue, sink = self.queue, self._sink
        self._is_spilling = False
        while queue and sink.has_room:
            chunk, size, owed, since = queue.popleft()
            if self.waited is not None:
                self.waited(time.monotonic() - since)
            self.queued_bytes -= size
            self.watch.queued_bytes -= size
            self.pushed += len(chunk)
            sink.push(chunk)
            self._settle(size, owed)
        if not queue:
            self.watch.holding.pop(self, None)

    def clear(self) -> None:
        """Release what waits: the receiver is gone."""
        while self.queue:
            _, size, owed, _ = self.queue.popleft()
            self._settle(size, owed)
        self.watch.queued_bytes -= self.queued_bytes
        self.queued_bytes = 0
        self.watch.holding.pop(self, None)
        if self.watch.waiting:
            self.watch.waiting.discard(self)

    def close(self) -> None:
        """The receiver is gone for good: without it, neither has to wait for the garbage collector."""
        self.clear()
        self._sink = NO_SINK

    def let_go(self) -> None:
        """Nothing more will come: what waits holds nobody back from here on, and its receiver may take its time."""
        if self._owed_bytes:
            self._spill()
        self.watch.waiting.discard(self)

    def waiting(self) -> Iterator[Chunk]:
        return (each[0] for each in self.queue or ())

    @property
    def delivered(self) -> int:
        """Bytes that the receiver has taken."""
        return self.pushed - self._sink.backlog

    def give_up(self) -> None:
        self._sink.give_up()

    def check(self, now: float) -> None:
        """Whether others wait for a receiver that takes nothing; asked by the watch while its buffer is full."""
        delivered = self.delivered
        if self.queued_bytes < self.watch.stall_policy.buffer_bytes:
            self._delivered = None
            self.watch.waiting.discard(self)
        elif delivered != self._delivered:
            self._delivered = delivered
            self._progress_at = now
        elif now - self._progress_at >= self._patience_s:
            self.watch.waiting.discard(self)
            self._sink.give_up()
        elif now - self._progress_at >= GRACE_S and not self._is_overfull:
            self._spill()

    def _owe(self, size: int, source: ByteSource) -> ByteSource | None:
        """Release what fits in the buffer, and hold the source back for the rest."""
        if self.queued_bytes < self.watch.stall_policy.buffer_bytes or (self._is_spilling and not self._is_overfull):
            source.release(size)
            return None
        self._owed_bytes += size
        self.watch.waiting.add(self)
        return source

    @property
    def _patience_s(self) -> float:
        policy = self.watch.stall_policy
        return policy.step_stall_s if self._sink.takes_in_steps else policy.stall_s

    @property
    def _is_overfull(self) -> bool:
        return self.queued_bytes >= self.watch.stall_policy.buffer_bytes * SPILL

    def _spill(self) -> None:
        """Let the others go on: this one is about to be given up, unless it takes something soon."""
        self._is_spilling = True
        queue = self.queue or deque()
        self.queue = deque((chunk, size, None, since) for chunk, size, _, since in queue)
        for _, size, owed, _ in queue:
            self._settle(size, owed)

    def _settle(self, size: int, owed: ByteSource | None) -> None:
        if owed is not None:
            if owed.shares_credit:
                self._owed_bytes -= size
            owed.release(size)


class BufferLimit:
    """How much may wait for slow receivers in all, of however many tenants; beyond it the stalled ones are given up."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._shed_at = 0.0

    def enforce(self, watches: "Iterable[StallWatch]", now: float) -> int:
        """Of the tenant that holds most, those that take nothing go first; how many went is returned."""
        watches = list(watches)
        if now < self._shed_at or sum(each.held_bytes for each in watches) <= self._most_bytes:
            return 0
        self._shed_at = now + SHED_TICK_S
        shed = 0
        while sum(each.held_bytes for each in watches) > self._most_bytes:
            largest = max(watches, key=lambda each: each.held_bytes)
            if not largest.shed():
                break
            shed += 1
        return shed


class StallWatch:
    """Looks after the receivers of one process whose buffers are full, and those that end; idle ones cost nothing."""

    def __init__(self, stall_policy: StallPolicy) -> None:
        self.stall_policy = stall_policy
        self.waiting: set[Outflow] = set()
        self.flushing: set[Flushing] = set()
        # What waits for something, with what it had delivered at the last look.
        self.holding: dict[Outflow, int | None] = {}
        self.queued_bytes = 0
        self._flushes_at = 0.0
        self._watched_s = 0.0
        self._looked_at = 0.0

    def hold(self, outflow: Outflow) -> None:
        """A receiver has fallen behind."""
        self.holding[outflow] = None

    @property
    def held_bytes(self) -> int:
        """What all receivers that have fallen behind hold."""
        return self.queued_bytes + BESIDE_QUEUE * len(self.holding)

    def shed(self) -> bool:
        """Give up the receiver that has been behind longest without taking anything; False if all of them take."""
        for outflow, delivered in list(self.holding.items()):
            now_delivered = outflow.delivered
            if now_delivered == delivered:
                del self.holding[outflow]
                outflow.give_up()
                return True
            self.holding[outflow] = now_delivered
        return False

    def check(self, watched_s: float) -> None:
        for outflow in list(self.waiting):
            outflow.check(watched_s)

    def check_flushes(self, now: float) -> None:
        if now >= self._flushes_at:
            self._flushes_at = now + FLUSH_TICK_S
            for each in list(self.flushing):
                each.check_flush(now)

    def look(self, now: float) -> None:
        """Time counts against a receiver only while this process runs: one without a processor sees no progress."""
        self._watched_s += min(now - self._looked_at, LONGEST_TICK_S)
        self._looked_at = now
        if self.waiting:
            self.check(self._watched_s)
        if self.flushing:
            self.check_flushes(now)

    async def run(self) -> None:
        """Give up those that stall, for ever."""
        limit = BufferLimit(self.stall_policy.most_bytes)
        while True:
            await asyncio.sleep(TICK_S)
            now = time.monotonic()
            self.look(now)
            if self.holding:
                tell_shed(limit.enforce([self], now))


def tell_shed(count: int) -> None:
    if count:
        log.warning('connections.cut count=%d reason="too much waits for readers that take nothing"', count)
