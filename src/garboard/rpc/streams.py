"""One stream: its life (RFC 9113 §5.1) as a table, its windows and what waits to be sent on it."""

from collections import deque
from enum import IntEnum
from typing import Final

from garboard.rpc.headers import Headers
from garboard.rpc.violations import ErrorCode, StreamViolation

Chunk = bytes | memoryview


class StreamState(IntEnum):
    __hash__ = int.__hash__  # these are keys of a table that every frame asks: the hash of a name costs a call

    IDLE = 0
    OPEN = 1
    HALF_CLOSED_LOCAL = 2
    HALF_CLOSED_REMOTE = 3
    CLOSED = 4


class Trigger(IntEnum):
    __hash__ = int.__hash__

    SEND_HEADERS = 10
    SEND_DATA = 11
    SEND_END = 12
    SEND_RESET = 13
    RECEIVE_HEADERS = 20
    RECEIVE_DATA = 21
    RECEIVE_END = 22
    RECEIVE_RESET = 23


S, T = StreamState, Trigger
OPEN: Final = StreamState.OPEN  # where data leaves it: asked for every frame, and a member looked up costs a call

# What is not in the table is a mistake: ours for a SEND, the peer's for a RECEIVE.
TRANSITIONS: Final[dict[tuple[StreamState, Trigger], StreamState]] = {
    (S.IDLE, T.SEND_HEADERS): S.OPEN,
    (S.IDLE, T.RECEIVE_HEADERS): S.OPEN,
    (S.OPEN, T.SEND_HEADERS): S.OPEN,
    (S.OPEN, T.SEND_DATA): S.OPEN,
    (S.OPEN, T.SEND_END): S.HALF_CLOSED_LOCAL,
    (S.OPEN, T.SEND_RESET): S.CLOSED,
    (S.OPEN, T.RECEIVE_HEADERS): S.OPEN,
    (S.OPEN, T.RECEIVE_DATA): S.OPEN,
    (S.OPEN, T.RECEIVE_END): S.HALF_CLOSED_REMOTE,
    (S.OPEN, T.RECEIVE_RESET): S.CLOSED,
    (S.HALF_CLOSED_LOCAL, T.SEND_RESET): S.CLOSED,
    (S.HALF_CLOSED_LOCAL, T.RECEIVE_HEADERS): S.HALF_CLOSED_LOCAL,
    (S.HALF_CLOSED_LOCAL, T.RECEIVE_DATA): S.HALF_CLOSED_LOCAL,
    (S.HALF_CLOSED_LOCAL, T.RECEIVE_END): S.CLOSED,
    (S.HALF_CLOSED_LOCAL, T.RECEIVE_RESET): S.CLOSED,
    (S.HALF_CLOSED_REMOTE, T.SEND_HEADERS): S.HALF_CLOSED_REMOTE,
    (S.HALF_CLOSED_REMOTE, T.SEND_DATA): S.HALF_CLOSED_REMOTE,
    (S.HALF_CLOSED_REMOTE, T.SEND_END): S.CLOSED,
    (S.HALF_CLOSED_REMOTE, T.SEND_RESET): S.CLOSED,
    (S.HALF_CLOSED_REMOTE, T.RECEIVE_RESET): S.CLOSED,
}


class Stream:
    """The state of one stream; only the connection and its outbox change it."""

    __slots__ = (
        "credit",
        "end_of_sending",
        "has_received_headers",
        "id",
        "is_full",
        "is_in_turn",
        "queue",
        "queued_bytes",
        "receive_window",
        "send_window",
        "state",
    )

    def __init__(self, stream_id: int, *, send_window: int, receive_window: int) -> None:
        self.id = stream_id
        self.state = StreamState.IDLE
        self.send_window = send_window
        self.receive_window = receive_window
        # What the application has consumed and the peer has not been told yet; below zero when it was told too early.
        self.credit = 0
        self.has_received_headers = False
        # Waiting to be sent: chunks, then the end (None: not ended; empty: END_STREAM; else trailers).
        self.queue: deque[Chunk] = deque()
        self.queued_bytes = 0
        self.end_of_sending: Headers | None = None
        self.is_in_turn = False
        self.is_full = False

    def apply(self, trigger: Trigger) -> None:
        """Move to the next state, or refuse: a peer's mistake ends the stream, ours is a bug."""
        following = TRANSITIONS.get((self.state, trigger))
        if following is None:
            reason = f"{trigger.name} on a stream that is {self.state.name}"
            if trigger < Trigger.RECEIVE_HEADERS:
                raise RuntimeError(reason)
            raise StreamViolation(self.id, ErrorCode.STREAM_CLOSED, reason)
        self.state = following

    @property
    def can_send(self) -> bool:
        return self.end_of_sending is None and (self.state is OPEN or (self.state, Trigger.SEND_DATA) in TRANSITIONS)
