"""The receiving half of a connection: what each frame of the peer means, and what it may not do."""

from collections.abc import Callable, Iterable
from typing import Final

from garboard.rpc import frames
from garboard.rpc.events import (
    DataReceived,
    Event,
    GoingAway,
    HeadersReceived,
    PeerSettled,
    PingAcknowledged,
    StreamReset,
)
from garboard.rpc.frames import Frame, FrameReader
from garboard.rpc.headers import HeaderDecoder, Headers, flaw_of_request, flaw_of_response, flaw_of_trailers
from garboard.rpc.limits import Budgets, Clock, PingStrikes
from garboard.rpc.link import SHUTDOWN_PING, Link
from garboard.rpc.streams import OPEN, Stream, Trigger
from garboard.rpc.violations import ConnectionViolation, ErrorCode, StreamViolation

# Frame type: whether it belongs to a stream (None: either), and its length where that is fixed.
FRAME_RULES: Final[dict[int, tuple[bool | None, int | None]]] = {
    frames.DATA: (True, None),
    frames.HEADERS: (True, None),
    frames.PRIORITY: (True, 5),
    frames.RST_STREAM: (True, 4),
    frames.SETTINGS: (False, None),
    frames.PUSH_PROMISE: (True, None),
    frames.PING: (False, 8),
    frames.GOAWAY: (False, None),
    frames.WINDOW_UPDATE: (None, 4),
    frames.CONTINUATION: (True, None),
}

STRAYS_PER_STREAM: Final = 4
MOST_UPDATES_DUE: Final = 1 << 20


class Receiver:
    """Reads frames and applies them to the link; a violation is raised, for the connection to answer."""

    def __init__(self, link: Link, clock: Clock) -> None:
        config = link.config
        self._link = link
        self._strikes = PingStrikes(config.limits, clock)
        self._budgets = Budgets(config.limits, clock)
        self._decoder = HeaderDecoder(config.limits)
        self._reader = FrameReader(config.max_frame, preface=b"" if link.is_client else frames.PREFACE)
        self._has_settled = False
        self._has_sent_since_ping = False
        self._updates_due = 0  # window updates that answer what we sent

    def receive(self, data: bytes | bytearray | memoryview, events: list[Event]) -> None:
        """Add to `events` what the bytes meant, up to the first violation."""
        for frame in self._reader.feed(data):
            plain = self._plain_data(frame) if not frame.kind else None
            if plain is not None:
                events.append(plain)
            else:
                events.extend(self._on_frame(frame))

    def sent_content(self, size: int) -> None:
        """Headers or data went out: a PING that comes now may measure them, and window updates will follow."""
        self._updates_due = min(self._updates_due + (size >> 9) + 2, MOST_UPDATES_DUE)
        if not self._has_sent_since_ping:
            self._has_sent_since_ping = True
            self._strikes.forgive()

    def _plain_data(self, frame: Frame) -> Event | None:
        """What nearly every frame of a busy stream is; None for whatever has to be looked at more closely."""
        _, flags, stream_id, payload, length = frame
        link = self._link
        stream = link.streams.get(stream_id)
        if (
            stream is None or flags or stream.state is not OPEN or not stream.has_received_headers or not payload
            or length > stream.receive_window or length > link.receive_window or self._decoder.is_open
        ):  # fmt: skip
            return None
        link.receive_window -= length
        stream.receive_window -= length
        return DataReceived(stream, payload, False)

    def _on_frame(self, frame: Frame) -> Iterable[Event]:
        kind = frame.kind
        if kind != frames.CONTINUATION and self._decoder.is_open:
            raise ConnectionViolation(ErrorCode.PROTOCOL_ERROR, "a header block interrupted by another frame")
        if kind != frames.SETTINGS and not self._has_settled:
            raise ConnectionViolation(ErrorCode.PROTOCOL_ERROR, "the first frame is not SETTINGS")
        rule = FRAME_RULES.get(kind)
        if rule is None:
            return self._on_idle_frame(frame)
        on_stream, length = rule
        if on_stream is not None and on_stream != (frame.stream_id != 0):
            raise ConnectionViolation(ErrorCode.PROTOCOL_ERROR, f"frame type {kind} on stream {frame.stream_id}")
        if length is not None and length != frame.length:
            raise ConnectionViolation(ErrorCode.FRAME_SIZE_ERROR, f"frame type {kind} of {frame.length} bytes")
        try:
            return _HANDLERS[kind](self, frame)
        except StreamViolation as violation:
            return self._fail_stream(violation)

    def _fail_stream(self, violation: StreamViolation) -> Iterable[Event]:
        self._spend_reset()
        stream = self._link.streams.get(violation.stream_id)
        if stream is None:
            self._link.outbox.answer(frames.rst_stream(violation.stream_id, violation.code))
            return ()
        self._link.reset_stream(stream, violation.code)
        return (StreamReset(stream, violation.code, violation.reason, by_peer=False),)

    def _on_data(self, frame: Frame) -> Iterable[Event]:
        self._link.receive_window -= frame.length
        if self._link.receive_window < 0:
            raise ConnectionViolation(ErrorCode.FLOW_CONTROL_ERROR, "more data than the connection's window")
        data = frames.strip_padding(frame.flags, frame.payload)
        stream = self._link.streams.get(frame.stream_id)
        if stream is None:
            self._check_stray(frame.stream_id)
            if not data:
                self._spend_stray()
            self._link.credit_connection(len(frame.payload))
            return ()
        stream.receive_window -= frame.length
        ended = frame.flags & frames.END_STREAM
        try:
            if stream.receive_window < 0:
                raise StreamViolation(stream.id, ErrorCode.FLOW_CONTROL_ERROR, "more data than the stream's window")
            stream.apply(Trigger.RECEIVE_DATA)
            if not stream.has_received_headers:
                raise StreamViolation(stream.id, ErrorCode.PROTOCOL_ERROR, "data before headers")
        except StreamViolation:
            self._link.credit_connection(len(frame.payload))
            raise
        if ended:
            self._receive_end(stream)
        elif not data and len(frame.payload) == frame.length:  # not the late part of a larger frame
            self._budgets.idle_frames.spend()
        if len(data) != len(frame.payload):
            self._link.credit(stream, len(frame.payload) - len(data))
        return (DataReceived(stream, data, bool(ended)),)

    def _on_headers(self, frame: Frame) -> Iterable[Event]:
        payload = frames.strip_padding(frame.flags, frame.payload)
        if frame.flags & frames.PRIORITY_FLAG:
            if len(payload) < 5:
                raise ConnectionViolation(ErrorCode.FRAME_SIZE_ERROR, "HEADERS too short for its priority")
            payload = payload[5:]
        self._decoder.begin(frame.stream_id, frame.flags, payload)
        return self._finish_headers(frame)

    def _on_continuation(self, frame: Frame) -> Iterable[Event]:
        if not self._decoder.is_open or frame.stream_id != self._decoder.stream_id:
            raise ConnectionViolation(ErrorCode.PROTOCOL_ERROR, "CONTINUATION of nothing")
        self._decoder.add(frame.payload)
        return self._finish_headers(frame)

    def _finish_headers(self, frame: Frame) -> Iterable[Event]:
        if not frame.flags & frames.END_HEADERS:
            return ()
        headers = self._decoder.finish()
        if not self._link.is_client:
            self._budgets.header_bytes.spend(sum(len(name) + len(value) + 32 for name, value in headers))
        ended = bool(self._decoder.flags & frames.END_STREAM)
        stream = self._link.streams.get(frame.stream_id) or self._accept_stream(frame.stream_id)
        if stream is None:
            return ()
        stream.apply(Trigger.RECEIVE_HEADERS)
        return self._received_headers(stream, headers, ended)

    def _received_headers(self, stream: Stream, headers: Headers, ended: bool) -> Iterable[Event]:
        is_trailers = stream.has_received_headers
        check = flaw_of_trailers if is_trailers else flaw_of_response if self._link.is_client else flaw_of_request
        flaw = check(headers) or ("trailers that do not end the stream" if is_trailers and not ended else None)
        if flaw:
            raise StreamViolation(stream.id, ErrorCode.PROTOCOL_ERROR, flaw)
        if self._link.is_client and not is_trailers and headers[0][1].startswith("1"):
            self._budgets.idle_frames.spend()
            return ()
        stream.has_received_headers = True
        if ended:
            self._receive_end(stream)
        return (HeadersReceived(stream, headers, is_trailers, ended),)

    def _accept_stream(self, stream_id: int) -> Stream | None:
        """The stream a client opens with these headers; None when they belong to a stream that is over or refused."""
        if self._link.is_client or stream_id <= self._link.last_peer_stream_id:
            self._check_stray(stream_id)
            if not self._link.is_client:
                self._budgets.idle_frames.spend()
            return None
        if stream_id % 2 == 0:
            raise ConnectionViolation(ErrorCode.PROTOCOL_ERROR, "a client's stream with an even number")
        self._link.last_peer_stream_id = stream_id
        self._budgets.strays.earn(STRAYS_PER_STREAM)
        self._updates_due += STRAYS_PER_STREAM
        self._link.outbox.check_answers()  # a stream that is refused in words leaves nothing but its answer
        if self._link.is_refusing or len(self._link.streams) >= self._link.config.limits.concurrent_streams:
            raise StreamViolation(stream_id, ErrorCode.REFUSED_STREAM, "no more streams")
        return self._link.add_stream(stream_id)

    def _on_rst_stream(self, frame: Frame) -> Iterable[Event]:
        stream = self._link.streams.get(frame.stream_id)
        if stream is None:
            self._check_stray(frame.stream_id)
            self._spend_stray()
            return ()
        self._spend_reset()
        stream.apply(Trigger.RECEIVE_RESET)
        self._link.drop_stream(stream)
        code = ErrorCode(frames.parse_word(frame.payload))
        unprocessed = code is ErrorCode.REFUSED_STREAM
        return (
            StreamReset(stream, code, f"reset by the peer ({code.name})", by_peer=True, is_unprocessed=unprocessed),
        )

    def _on_settings(self, frame: Frame) -> Iterable[Event]:
        if frame.flags & frames.ACK:
            if frame.length or not self._has_settled:
                raise ConnectionViolation(ErrorCode.FRAME_SIZE_ERROR, "a SETTINGS acknowledgement out of place")
            return self._on_idle_frame(frame)
        self._budgets.settings.spend()
        grown = self._link.peer.update(frames.parse_settings(frame.payload))
        self._link.outbox.max_frame = self._link.peer.max_frame
        self._link.outbox.set_table_size(self._link.peer.header_table_bytes)
        for stream in self._link.streams.values():
            stream.send_window += grown
            if stream.send_window > frames.MAX_WINDOW:
                raise ConnectionViolation(ErrorCode.FLOW_CONTROL_ERROR, "a window larger than 2^31 - 1")
            self._link.outbox.resume(stream)
        self._link.outbox.answer(frames.SETTINGS_ACK)
        is_first, self._has_settled = not self._has_settled, True
        return (PeerSettled(),) if is_first else ()

    def _on_push_promise(self, frame: Frame) -> Iterable[Event]:
        raise ConnectionViolation(ErrorCode.PROTOCOL_ERROR, f"PUSH_PROMISE on stream {frame.stream_id}")

    def _on_ping(self, frame: Frame) -> Iterable[Event]:
        payload = bytes(frame.payload)
        if frame.flags & frames.ACK:
            if payload == SHUTDOWN_PING and self._link.is_draining:
                self._link.is_refusing = True
                self._link.outbox.control(frames.goaway(self._link.last_peer_stream_id, ErrorCode.NO_ERROR))
                return ()
            self._budgets.idle_frames.spend()
            return (PingAcknowledged(payload),)
        if not self._has_sent_since_ping:
            self._budgets.pings.spend()
        self._has_sent_since_ping = False
        if not self._link.is_client:
            self._strikes.ping()
        self._link.outbox.answer(frames.ping(payload, is_ack=True))
        return ()

    def _on_goaway(self, frame: Frame) -> Iterable[Event]:
        if frame.length < 8:
            raise ConnectionViolation(ErrorCode.FRAME_SIZE_ERROR, "GOAWAY too short")
        self._budgets.settings.spend()
        self._link.is_draining = True
        last_stream_id = frames.parse_word(frame.payload) & frames.MAX_STREAM_ID
        code = ErrorCode(frames.parse_word(frame.payload[4:]))
        events: list[Event] = [GoingAway(code, bytes(frame.payload[8:1032]).decode("utf-8", "replace"))]
        unprocessed = [s for s in self._link.streams.values() if self._link.is_client and s.id > last_stream_id]
        for stream in unprocessed:
            self._link.drop_stream(stream)
            events.append(StreamReset(stream, code, "the peer is going away", by_peer=True, is_unprocessed=True))
        return events

    def _on_window_update(self, frame: Frame) -> Iterable[Event]:
        increment = frames.parse_word(frame.payload) & frames.MAX_WINDOW
        if self._updates_due:
            self._updates_due -= 1
        elif not self._link.is_client:
            self._budgets.window_updates.spend()
        if frame.stream_id == 0:
            self._link.outbox.window += increment
            if not increment or self._link.outbox.window > frames.MAX_WINDOW:
                raise ConnectionViolation(
                    _flaw_of_increment(increment), "a window update of the connection out of range"
                )
            return ()
        stream = self._link.streams.get(frame.stream_id)
        if stream is None:
            self._check_stray(frame.stream_id)
            return ()
        stream.send_window += increment
        if not increment or stream.send_window > frames.MAX_WINDOW:
            raise StreamViolation(stream.id, _flaw_of_increment(increment), "a window update out of range")
        self._link.outbox.resume(stream)
        return ()

    def _on_idle_frame(self, _frame: Frame) -> Iterable[Event]:
        self._budgets.idle_frames.spend()
        return ()

    def _check_stray(self, stream_id: int) -> None:
        """A frame for a stream we do not have: late for one that is over, or a mistake for one that never was."""
        opened_by_us = stream_id % 2 == (1 if self._link.is_client else 0)
        newest = self._link.next_stream_id - 2 if self._link.is_client else 0
        if stream_id > (newest if opened_by_us else self._link.last_peer_stream_id):
            raise ConnectionViolation(ErrorCode.PROTOCOL_ERROR, f"a frame for stream {stream_id}, which is idle")

    def _spend_reset(self) -> None:
        """Streams cost a server when a client opens them; what a server does to our own is bounded by us."""
        if not self._link.is_client:
            self._budgets.resets.spend()

    def _spend_stray(self) -> None:
        if not self._link.is_client:
            self._budgets.strays.spend()

    def _receive_end(self, stream: Stream) -> None:
        stream.apply(Trigger.RECEIVE_END)
        self._link.forget_if_closed(stream)

    @classmethod
    def handlers(cls) -> "dict[int, Callable[[Receiver, Frame], Iterable[Event]]]":
        """Return the methods by the type of a frame. What held its own would wait for the garbage collector."""
        return {
            frames.DATA: cls._on_data,
            frames.HEADERS: cls._on_headers,
            frames.PRIORITY: cls._on_idle_frame,
            frames.RST_STREAM: cls._on_rst_stream,
            frames.SETTINGS: cls._on_settings,
            frames.PUSH_PROMISE: cls._on_push_promise,
            frames.PING: cls._on_ping,
            frames.GOAWAY: cls._on_goaway,
            frames.WINDOW_UPDATE: cls._on_window_update,
            frames.CONTINUATION: cls._on_continuation,
        }


_HANDLERS: Final = Receiver.handlers()


def _flaw_of_increment(increment: int) -> ErrorCode:
    """RFC 9113 §6.9: what a window update that cannot be taken is called."""
    return ErrorCode.FLOW_CONTROL_ERROR if increment else ErrorCode.PROTOCOL_ERROR
