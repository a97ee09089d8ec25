"""Bounded buffers and fairness: what waits for one slow receiver, and how many senders share one stream.

Every byte belongs to a `Source`, which sends no more than a bounded amount before it hears that its bytes have gone on.
The peers of Konnectivity have no credit per connection, so a receiver that is too slow may hold back the stream it
shares with others; it may do so only while it makes progress (`Outflow.is_stalled`).
"""

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final, Protocol

from garboard.rpc import Call
from garboard.rpc.aio import AioLink

Chunk = bytes | memoryview

MAX_PAYLOAD: Final = 32 * 1024  # stock agents queue 150 packets per connection, whatever their size


class Source(Protocol):
    """Where bytes came from."""

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


class Nobody:
    """The source of what we say ourselves."""

    def release(self, size: int) -> None:
        pass


NOBODY: Final = Nobody()


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How much may wait for a receiver, and how long it may take nothing at all while others wait for it."""

    buffer_bytes: int = 4 * 1024 * 1024
    stall_s: float = 2.0


class Outflow:
    """What waits for one receiver. Up to the buffer's size its source goes on; beyond that it is held back."""

    __slots__ = ("_delivered", "_owed_bytes", "_patience", "_progress_at", "_pushed", "_queue", "_sink", "queued_bytes")

    def __init__(self, sink: Sink, patience: Patience) -> None:
        self._sink = sink
        self._patience = patience
        self._queue: deque[tuple[Chunk, int, Source | None]] = deque()
        self.queued_bytes = 0
        self._owed_bytes = 0
        self._pushed = 0
        self._delivered = 0
        self._progress_at = 0.0

    @property
    def is_empty(self) -> bool:
        return not self._queue

    @property
    def holds_back(self) -> bool:
        """Whether a source waits for this receiver."""
        return self._owed_bytes > 0

    def put(self, chunk: Chunk, size: int, source: Source) -> None:
        """Send the chunk, now or later; `size` is what the source counts it as."""
        if not self._queue and self._sink.has_room:
            self._pushed += len(chunk)
            self._sink.push(chunk)
            source.release(size)
            return
        owed: Source | None = None
        if self.queued_bytes >= self._patience.buffer_bytes:
            owed = source
            self._owed_bytes += size
        else:
            source.release(size)
        self._queue.append((chunk, size, owed))
        self.queued_bytes += size

    def drain(self) -> None:
        """The receiver has room again."""
        queue, sink = self._queue, self._sink
        while queue and sink.has_room:
            chunk, size, owed = queue.popleft()
            self.queued_bytes -= size
            self._pushed += len(chunk)
            sink.push(chunk)
            self._settle(size, owed)

    def clear(self) -> None:
        """Nobody will take what waits."""
        while self._queue:
            _, size, owed = self._queue.popleft()
            self._settle(size, owed)
        self.queued_bytes = 0

    def is_stalled(self, now: float) -> bool:
        """Whether others wait for a receiver that has taken nothing for too long; ask regularly."""
        delivered = self._pushed - self._sink.backlog
        if delivered != self._delivered or not self._owed_bytes:
            self._delivered = delivered
            self._progress_at = now
        return now - self._progress_at >= self._patience.stall_s

    def _settle(self, size: int, owed: Source | None) -> None:
        if owed is not None:
            self._owed_bytes -= size
            owed.release(size)


class FairSender:
    """One stream shared by many connections: their packets go in turn, each connection's in order.

    What belongs to no connection goes first. The queues are bounded by what the sources may have under way.
    """

    def __init__(self, link: AioLink, call: Call) -> None:
        self._link = link
        self._call = call
        self._urgent: deque[bytes] = deque()
        self._turns: dict[Hashable, deque[tuple[tuple[Chunk, ...], int, Source]]] = {}

    def send(self, key: Hashable | None, chunks: tuple[Chunk, ...], size: int, source: Source) -> None:
        """One message, in one piece or several."""
        call = self._call
        if call.status is not None:
            source.release(size)
        elif not self._turns and not self._urgent and call.has_room:
            call.send(*chunks)
            self._link.poke()
            source.release(size)
        elif key is None:
            self._urgent.append(b"".join(chunks))
        else:
            self._turns.setdefault(key, deque()).append((chunks, size, source))

    def writable(self) -> None:
        """The stream has room again."""
        call, turns = self._call, self._turns
        while self._urgent and call.has_room:
            call.send(self._urgent.popleft())
        while turns and call.has_room:
            key = next(iter(turns))
            queue = turns.pop(key)
            chunks, size, source = queue.popleft()
            call.send(*chunks)
            if queue:
                turns[key] = queue
            source.release(size)
        self._link.poke()

    def clear(self) -> None:
        """The stream is over: nothing of this will be sent."""
        self._urgent.clear()
        turns, self._turns = self._turns, {}
        for queue in turns.values():
            for _, size, source in queue:
                source.release(size)
