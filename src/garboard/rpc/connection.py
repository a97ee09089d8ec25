"""One HTTP/2 connection without I/O (RFC 9113): bytes in, events out; calls in, bytes out.

No push and no priorities, which gRPC does not use. Every DATA byte handed out must come back once through `credit`,
when the application has consumed it: that is what opens the windows again.
"""

import time

from garboard.rpc import frames
from garboard.rpc.events import ConnectionEnded, Event
from garboard.rpc.headers import Headers
from garboard.rpc.limits import Clock, Http2Config
from garboard.rpc.link import SHUTDOWN_PING, Link
from garboard.rpc.receiver import Receiver
from garboard.rpc.settings import own_settings
from garboard.rpc.streams import Stream, StreamState
from garboard.rpc.violations import ConnectionViolation, ErrorCode


class Connection(Link):
    """Either end of a connection; `is_client` says which."""

    def __init__(self, *, is_client: bool, config: Http2Config | None = None, clock: Clock = time.monotonic) -> None:
        super().__init__(is_client=is_client, config=config or Http2Config())
        self._receiver: Receiver | None = Receiver(self, clock)
        self.send_data = self.outbox.data
        self.send_sized_data = self.outbox.sized_data
        if is_client:
            self.outbox.control(frames.PREFACE)
        self.outbox.control(frames.settings(own_settings(self.config, is_client=is_client)))
        extra = self.config.connection_window - frames.DEFAULT_WINDOW
        if extra > 0:
            self.outbox.control(frames.window_update(0, extra))

    @property
    def can_open_stream(self) -> bool:
        return (
            not self.is_closed
            and not self.is_draining
            and len(self.streams) < self.peer.concurrent_streams
            and self.next_stream_id <= frames.MAX_STREAM_ID
        )

    def open_stream(self, headers: Headers, *, end_stream: bool = False) -> Stream:
        """Begin a request; the caller has looked at `can_open_stream`."""
        if not self.can_open_stream:
            raise RuntimeError("no stream can be opened on this connection now")
        stream = self.add_stream(self.next_stream_id)
        self.next_stream_id += 2
        self.outbox.headers(stream, headers, end_stream=end_stream)
        return stream

    def send_headers(self, stream: Stream, headers: Headers, *, end_stream: bool = False) -> None:
        self.outbox.headers(stream, headers, end_stream=end_stream)
        if end_stream:
            self._retire(stream)

    def end_stream(self, stream: Stream, trailers: Headers = ()) -> None:
        """Close our side after what is queued, with trailers when given."""
        self.outbox.end(stream, trailers)
        self._retire(stream)

    def ping(self, payload: bytes) -> None:
        self.outbox.control(frames.ping(payload))

    def shut_down(self) -> None:
        """Take no new streams and let the open ones finish; one round trip later the peer knows which were taken."""
        if not self.is_draining and not self.is_closed:
            self.is_draining = True
            self.outbox.control(frames.goaway(frames.MAX_STREAM_ID, ErrorCode.NO_ERROR))
            self.outbox.control(frames.ping(SHUTDOWN_PING))

    def receive_data(self, data: bytes | bytearray | memoryview) -> list[Event]:
        """Take in what arrived, at any split, and tell what it meant. Never raises: a bad peer is an event."""
        events: list[Event] = []
        if self._receiver is None:
            return events
        try:
            self._receiver.receive(data, events)
        except ConnectionViolation as violation:
            self.close(violation.code, violation.reason)
            events.append(ConnectionEnded(violation.code, violation.reason))
        return events

    def close(self, code: ErrorCode = ErrorCode.NO_ERROR, reason: str = "") -> None:
        super().close(code, reason)
        self._receiver = None  # it knows this connection, and each would keep the other

    def data_to_send(self, limit: int = 256 * 1024) -> bytes:
        """What to write to the transport now: all control frames and up to about `limit` bytes of data."""
        outbox = self.outbox
        data = outbox.take(limit)
        if outbox.has_sent_content:
            outbox.has_sent_content = False
            if self._receiver is not None:
                self._receiver.sent_content(len(data))
        if not outbox.ended:
            return data
        for stream in outbox.take_ended():
            self._retire(stream)
        return data + outbox.take(0)

    def _retire(self, stream: Stream) -> None:
        """Our side of the stream has ended: forget it, or tell a client whose answer is complete to stop sending."""
        if stream.state is StreamState.HALF_CLOSED_LOCAL and not self.is_client:
            self.reset_stream(stream, ErrorCode.NO_ERROR)
        self.forget_if_closed(stream)
