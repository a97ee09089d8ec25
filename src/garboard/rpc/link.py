"""What the two halves of a connection share: its streams, its windows, and how either half ends things."""

from typing import Final

from garboard.rpc import frames
from garboard.rpc.limits import Http2Config
from garboard.rpc.outbox import Outbox
from garboard.rpc.settings import PeerSettings
from garboard.rpc.streams import Stream, StreamState
from garboard.rpc.violations import ErrorCode

SHUTDOWN_PING: Final = b"garboard"
_RECEIVING: Final = frozenset({StreamState.OPEN, StreamState.HALF_CLOSED_LOCAL})


class Link:
    """The state of one end of a connection."""

    def __init__(self, *, is_client: bool, config: Http2Config) -> None:
        self.config = config
        self.is_client = is_client
        self.is_closed = False
        # Draining: we open no new streams. Refusing: the peer knows, so it may open none either.
        self.is_draining = False
        self.is_refusing = False
        self.streams: dict[int, Stream] = {}
        self.peer = PeerSettings()
        self.outbox = Outbox(config)
        self.next_stream_id = 1
        self.last_peer_stream_id = 0
        self.receive_window = config.connection_window
        self._credit = 0

    def add_stream(self, stream_id: int) -> Stream:
        stream = Stream(stream_id, send_window=self.peer.stream_window, receive_window=self.config.stream_window)
        self.streams[stream_id] = stream
        return stream

    def drop_stream(self, stream: Stream) -> None:
        """The stream is over, at once and for both sides."""
        self.streams.pop(stream.id, None)
        stream.state = StreamState.CLOSED
        self.outbox.drop(stream)

    def forget_if_closed(self, stream: Stream) -> None:
        if stream.state is StreamState.CLOSED:
            self.streams.pop(stream.id, None)

    def reset_stream(self, stream: Stream, code: ErrorCode) -> None:
        """Give the stream up; nothing happens if it is over already."""
        if stream.id in self.streams:
            self.drop_stream(stream)
            self.outbox.control(frames.rst_stream(stream.id, code))

    def credit(self, stream: Stream, size: int) -> None:
        """`size` bytes of the stream are consumed (or, when negative, were credited too early)."""
        self._credit += size
        if self._credit * 4 >= self.config.connection_window:
            self.credit_connection(0)
        stream.credit += size
        if stream.credit * 4 >= self.config.stream_window and stream.state in _RECEIVING:
            self.outbox.control(frames.window_update(stream.id, stream.credit))
            stream.receive_window += stream.credit
            stream.credit = 0

    def credit_connection(self, size: int) -> None:
        """`size` bytes are consumed that belong to no live stream."""
        self._credit += size
        if self._credit * 4 >= self.config.connection_window:
            self.outbox.control(frames.window_update(0, self._credit))
            self.receive_window += self._credit
            self._credit = 0

    def close(self, code: ErrorCode = ErrorCode.NO_ERROR, reason: str = "") -> None:
        """Say GOAWAY and be done; what the streams wanted to send is dropped."""
        if self.is_closed:
            return
        self.is_closed = True
        for stream in list(self.streams.values()):
            self.drop_stream(stream)
        self.outbox.control(frames.goaway(self.last_peer_stream_id, code, reason.encode()))
