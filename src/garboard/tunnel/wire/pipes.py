"""Connections that share a stream: fair scheduling, order within each, and credit of its own where both ends agreed."""

from collections import deque
from collections.abc import Iterator
from typing import Final, Protocol

from garboard.rpc import Call
from garboard.rpc.aio import AioLink
from garboard.tunnel.metrics import Count
from garboard.tunnel.wire import packets
from garboard.tunnel.wire.capabilities import STOCK, Terms
from garboard.tunnel.wire.flow import MAX_PAYLOAD, NO_SOURCE, ByteSource, Chunk
from garboard.tunnel.wire.packets import counted_type_of, data_header, encode_packet

_UNBOUNDED: Final = 1 << 62
# Of messages that belong to no connection; a peer that reads nothing would let their queue grow for ever.
MAX_UNREAD_MESSAGES: Final = 65_536
LARGE_PAYLOAD: Final = 128 * 1024  # between our own ends


class DataSink(Protocol):
    """The socket or frontend at the outer end of a pipe."""

    def deliver_data(self, message: bytes, start: int, source: ByteSource) -> None:
        """A DATA packet whose payload begins at `start`; its whole size is released on the source."""


class Pipe:
    """One connection on one stream; as a `ByteSource` it gives back what came through it."""

    __slots__ = (
        "_header", "_header_size", "_held", "_owed", "_sender", "connect_id", "is_over", "is_scheduled", "queue",
        "shares_credit", "sink", "window",
    )  # fmt: skip

    def __init__(self, sender: "PipeSender", connect_id: int, sink: DataSink) -> None:
        terms = sender.terms
        self._sender = sender
        self.connect_id = connect_id
        self.sink: DataSink | None = sink
        self.shares_credit = not terms.has_credit
        self.window = terms.send_window or _UNBOUNDED
        self.queue: deque[tuple[tuple[Chunk, ...], int, int, ByteSource]] | None = None
        self.is_scheduled = False
        self.is_over = False  # nothing more will be sent on it than what is queued
        self._header_size, self._header = 0, b""  # of the last packet: the next is often as long
        self._held = 0  # received and not released
        self._owed = 0  # released, and the peer does not know yet

    @property
    def may_go(self) -> bool:
        """Whether the first in the queue may be sent; what costs nothing waits for no credit."""
        return bool(self.queue) and (self.window > 0 or not self.queue[0][2])  # type: ignore[index]

    def send(self, chunk: Chunk, source: ByteSource) -> None:
        """A payload."""
        size = len(chunk)
        header = self._header
        if size != self._header_size:
            header = self._header = data_header(self.connect_id, size)
            self._header_size = size
        self._sender.send(self, (header, chunk), size, len(header) + size, source)

    def send_all(self, data: bytes, source: ByteSource) -> None:
        """Data as payloads of the size that the peer handles best."""
        most = MAX_PAYLOAD if self.shares_credit else LARGE_PAYLOAD
        size = len(data)
        if size <= most:  # as `send` does, without the call
            header = self._header
            if size != self._header_size:
                header = self._header = data_header(self.connect_id, size)
                self._header_size = size
            self._sender.send(self, (header, data), size, len(header) + size, source)
            return
        view = memoryview(data)
        for start in range(0, len(data), most):
            self.send(view[start : start + most], source)

    def forward(self, message: bytes, source: ByteSource) -> None:
        """A DATA packet as it came."""
        size = len(message)
        self._sender.send(self, (message,), size, size, source)

    def receive(self, message: bytes, start: int) -> bool:
        """A DATA packet of the peer; False if it sent more than it may."""
        size = len(message)
        self._held += size
        if self.sink is None:
            self.release(size)
        else:
            self.sink.deliver_data(message, start, self)
        return self.shares_credit or self._held <= self._sender.most_held

    def release(self, size: int) -> None:
        self._held -= size
        if self.shares_credit:
            self._sender.release(size)
            return
        self._owed += size
        if self._owed >= self._sender.give_back_at and not self.is_over:
            credit = packets.Credit(self.connect_id, self._owed)
            self._owed = 0
            self._sender.send_urgent(encode_packet(credit))


class PipeSender:
    """The sending side of a stream, and all its pipes: what belongs to no connection goes first, then each
    pipe, round robin.

    The queues are bounded by what the sources may have under way.
    """

    def __init__(self, link: AioLink, call: Call, data_packets: Count) -> None:
        self._data_packets = data_packets
        self._link = link
        self._call = call
        self._urgent: deque[bytes] = deque()
        self._scheduled: deque[Pipe] = deque()
        self.pipes: dict[int, Pipe] = {}
        self.agree(STOCK)

    def agree(self, terms: Terms) -> None:
        """Go by these terms from now on."""
        self.terms = terms
        self.has_credit = terms.has_credit  # asked for all that comes
        self.give_back_at = terms.receive_window // 4
        # Data that was under way when the window was full may be one packet more, and a packet is below 4 MiB.
        self.most_held = terms.receive_window + 4 * 1024 * 1024

    def open(self, connect_id: int, sink: DataSink) -> Pipe:
        pipe = self.pipes[connect_id] = Pipe(self, connect_id, sink)
        return pipe

    def release(self, size: int) -> None:
        """Bytes of a connection that shares the stream's credit have gone on."""
        self._call.consume(size)
        self._link.poke()

    def send_urgent(self, message: bytes) -> None:
        """One message that belongs to no connection, or must not wait for one."""
        call = self._call
        if call.status is not None:
            return
        if not self._urgent and call.has_room:
            call.send(message)
            self._link.poke()
        elif len(self._urgent) < MAX_UNREAD_MESSAGES:
            self._urgent.append(message)
        else:
            self._link.abort("the peer takes nothing of what it is told")

    def send(self, pipe: Pipe, chunks: tuple[Chunk, ...], size: int, cost: int, source: ByteSource) -> None:
        """One message; `size` is what the source counts it as, `cost` what it takes of the pipe's credit."""
        call = self._call
        if cost:
            self._data_packets.value += 1
        if call.status is not None:
            source.release(size)
        elif (
            not self._scheduled
            and not self._urgent
            and call.has_room
            and not pipe.queue
            and (pipe.window > 0 or not cost)
        ):
            call.send(*chunks)
            pipe.window -= cost
            self._link.poke()
            source.release(size)
        else:
            if pipe.queue is None:
                pipe.queue = deque()
            pipe.queue.append((chunks, size, cost, source))
            self._schedule(pipe)

    def send_last(self, pipe: Pipe, message: bytes) -> None:
        """The end of a connection, behind what it has sent before."""
        self.send(pipe, (message,), 0, 0, NO_SOURCE)

    def credit(self, connect_id: int, size: int) -> None:
        """The peer takes so many more bytes of a connection."""
        pipe = self.pipes.get(connect_id)
        if pipe is not None and size > 0:
            pipe.window += size
            self._schedule(pipe)
            self.writable()

    def finish(self, pipe: Pipe) -> None:
        """The connection is over: the pipe goes once its queue is empty."""
        pipe.is_over = True
        pipe.sink = None
        if not pipe.queue:
            self._forget(pipe)

    def drop(self, pipe: Pipe) -> bool:
        """Forget what waits to be sent on a pipe, and tell whether there was something."""
        queue, pipe.queue = pipe.queue, None
        for _, size, _, source in queue or ():
            source.release(size)
        return bool(queue)

    def writable(self) -> None:
        """The stream may have room again."""
        call, scheduled = self._call, self._scheduled
        while self._urgent and call.has_room:
            call.send(self._urgent.popleft())
        while scheduled and call.has_room:
            pipe = scheduled.popleft()
            pipe.is_scheduled = False
            if pipe.may_go:
                self._send_next(pipe)
        self._link.poke()

    def clear(self) -> None:
        """The stream is over: nothing of this will be sent."""
        self._urgent.clear()
        self._scheduled.clear()
        pipes, self.pipes = self.pipes, {}
        for pipe in pipes.values():
            pipe.is_over = True
            pipe.sink = None
            self.drop(pipe)

    @property
    def queued_bytes(self) -> int:
        """What connections want to send and may not yet."""
        return sum(cost for pipe in self.pipes.values() for _, _, cost, _ in pipe.queue or ())

    def waiting_types(self) -> Iterator[str]:
        """The packet types of what waits to be sent."""
        yield from map(counted_type_of, self._urgent)
        for pipe in self.pipes.values():
            for chunks, _, cost, _ in pipe.queue or ():
                yield "DATA" if cost else counted_type_of(bytes(chunks[0]))

    def _send_next(self, pipe: Pipe) -> None:
        assert pipe.queue is not None
        chunks, size, cost, source = pipe.queue.popleft()
        self._call.send(*chunks)
        pipe.window -= cost
        self._schedule(pipe)
        if pipe.is_over and not pipe.queue:
            self._forget(pipe)
        source.release(size)

    def _schedule(self, pipe: Pipe) -> None:
        if not pipe.is_scheduled and pipe.may_go:
            pipe.is_scheduled = True
            self._scheduled.append(pipe)

    def _forget(self, pipe: Pipe) -> None:
        if self.pipes.get(pipe.connect_id) is pipe:
            del self.pipes[pipe.connect_id]
