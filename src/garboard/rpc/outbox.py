"""What waits to be sent: control frames first, then the streams in turn, within the peer's windows."""

from collections import deque

from garboard.rpc import frames
from garboard.rpc.headers import HeaderEncoder, Headers
from garboard.rpc.limits import Http2Config
from garboard.rpc.streams import OPEN, Chunk, Stream, StreamState, Trigger
from garboard.rpc.violations import ConnectionViolation, ErrorCode


class Outbox:
    """The sending half of a connection."""

    def __init__(self, config: Http2Config) -> None:
        self._config = config
        self._control: list[bytes] = []
        self._turns: deque[Stream] = deque()
        self._encoder = HeaderEncoder()
        self.writable: list[Stream] = []  # that were full and have room again
        self.ended: list[Stream] = []  # whose last frame has gone out
        self.window = frames.DEFAULT_WINDOW
        self.max_frame = frames.DEFAULT_MAX_FRAME
        self.has_sent_content = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing can be sent now; what waits for a window does not count."""
        return not self._control and not (self._turns and self.window > 0)

    def set_table_size(self, size: int) -> None:
        self._encoder.set_table_size(size)

    def control(self, data: bytes) -> None:
        """Queue a control frame of our own making."""
        self._control.append(data)

    def answer(self, data: bytes) -> None:
        """Queue a control frame that the peer made us send."""
        self.check_answers()
        self._control.append(data)

    def check_answers(self) -> None:
        """A peer that reads nothing cannot make the queue grow."""
        if len(self._control) >= self._config.limits.queued_control_frames:
            raise ConnectionViolation(ErrorCode.ENHANCE_YOUR_CALM, "too many answers waiting to be read")

    def headers(self, stream: Stream, headers: Headers, *, end_stream: bool) -> None:
        """Queue headers; they go before any data, since the stream has none yet."""
        stream.apply(Trigger.SEND_HEADERS)
        self._control.append(self._header_frames(stream, headers, end_stream=end_stream))

    def data(self, stream: Stream, *chunks: Chunk) -> None:
        """Queue the chunks, which must not change any more."""
        self.sized_data(stream, chunks, sum(map(len, chunks)))

    def sized_data(self, stream: Stream, chunks: tuple[Chunk, ...], size: int) -> None:
        """The same for a caller that knows how many bytes they are."""
        if stream.state is not OPEN:
            stream.apply(Trigger.SEND_DATA)
        queued_bytes = stream.queued_bytes + size
        stream.queue.extend(chunks)
        stream.queued_bytes = queued_bytes
        if queued_bytes >= self._config.send_queue_bytes:
            stream.is_full = True
        if not stream.is_in_turn and stream.send_window > 0 and queued_bytes:
            stream.is_in_turn = True
            self._turns.append(stream)

    def end(self, stream: Stream, trailers: Headers = ()) -> None:
        """Close our side of the stream after its data, with trailers when given."""
        stream.end_of_sending = trailers
        if stream.queued_bytes:
            return
        if trailers:
            self._control.append(self._header_frames(stream, trailers, end_stream=True))
        else:
            self._control.append(frames.frame(frames.DATA, frames.END_STREAM, stream.id))
            stream.apply(Trigger.SEND_END)

    def drop(self, stream: Stream) -> None:
        """Forget what the stream wanted to send."""
        stream.queue.clear()
        stream.queued_bytes = 0

    def resume(self, stream: Stream) -> None:
        """The peer opened the window of this stream."""
        if not stream.is_in_turn and stream.queued_bytes and stream.send_window > 0:
            stream.is_in_turn = True
            self._turns.append(stream)

    def take(self, limit: int) -> bytes:
        """The next bytes for the peer: all control frames, then data until about `limit` bytes are reached."""
        out: list[Chunk] = []
        out, self._control = self._control, out  # type: ignore[assignment]  # a list of bytes may get views here
        turns = self._turns
        while turns and limit > 0 and self.window > 0:
            stream = turns.popleft()
            stream.is_in_turn = False
            if stream.state is StreamState.CLOSED or stream.send_window <= 0 or not stream.queued_bytes:
                continue
            limit -= self._take_frame(stream, out)
            self.resume(stream)
        return b"".join(out)

    def take_writable(self) -> list[Stream]:
        """Streams that were full and have room again."""
        writable, self.writable = self.writable, []
        return writable

    def take_ended(self) -> list[Stream]:
        """Streams whose last frame has gone out."""
        ended, self.ended = self.ended, []
        return ended

    def _take_frame(self, stream: Stream, out: list[Chunk]) -> int:
        config = self._config
        queue = stream.queue
        size = min(stream.queued_bytes, stream.send_window, self.window, self.max_frame, config.turn_bytes)
        stream.send_window -= size
        self.window -= size
        stream.queued_bytes -= size
        self.has_sent_content = True
        is_last = not stream.queued_bytes and stream.end_of_sending is not None
        flags = frames.END_STREAM if is_last and not stream.end_of_sending else 0
        out.append(frames.pack_header(size << 8 | frames.DATA, flags, stream.id))
        if stream.queued_bytes:
            _move_chunks(queue, size, out)
        else:
            out.extend(queue)
            queue.clear()
        if is_last:
            self._finish(stream, out)
            self.ended.append(stream)
        elif stream.is_full and stream.queued_bytes <= config.send_queue_bytes // 2:
            stream.is_full = False
            self.writable.append(stream)
        return size

    def _finish(self, stream: Stream, out: list[Chunk]) -> None:
        if stream.end_of_sending:
            out.append(self._header_frames(stream, stream.end_of_sending, end_stream=True))
        else:
            stream.apply(Trigger.SEND_END)

    def _header_frames(self, stream: Stream, headers: Headers, *, end_stream: bool) -> bytes:
        self.has_sent_content = True
        block = self._encoder.encode(headers)
        if end_stream:
            stream.apply(Trigger.SEND_END)
        return frames.header_frames(stream.id, block, end_stream=end_stream, max_frame=self.max_frame)


def _move_chunks(queue: deque[Chunk], size: int, out: list[Chunk]) -> None:
    """Move exactly `size` bytes from the queue to `out`, cutting the last chunk if need be."""
    while size:
        chunk = queue.popleft()
        length = len(chunk)
        if length > size:
            view = memoryview(chunk)
            out.append(view[:size])
            queue.appendleft(view[size:])
            return
        out.append(chunk)
        size -= length
