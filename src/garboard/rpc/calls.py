"""gRPC calls without I/O: what either side may do with a call, and what it hears of it."""

from enum import IntEnum
from typing import Final, NamedTuple, Protocol

from garboard.rpc.connection import Connection
from garboard.rpc.errors import RpcFailed, SendQueueFull
from garboard.rpc.headers import Headers
from garboard.rpc.messages import PREFIX_BYTES, Deframer, pack_prefix
from garboard.rpc.metadata import Metadata, encode_message, encode_metadata
from garboard.rpc.status import OK, Status
from garboard.rpc.streams import OPEN, Chunk, Stream
from garboard.rpc.violations import ErrorCode


class CallState(IntEnum):
    __hash__ = int.__hash__  # a key of the table below

    STARTING = 0
    STREAMING = 1
    DONE = 2


class CallStep(IntEnum):
    """What moves a call: the server sends these, the client receives them; either side may abort."""

    __hash__ = int.__hash__

    HEADERS = 10
    MESSAGE = 11
    STATUS = 12
    ABORT = 13


C, P = CallState, CallStep
STARTING: Final = CallState.STARTING  # asked for every message, and a member looked up costs a call

TRANSITIONS: Final[dict[tuple[CallState, CallStep], CallState]] = {
    (C.STARTING, P.HEADERS): C.STREAMING,
    (C.STARTING, P.STATUS): C.DONE,  # a trailers-only reply
    (C.STARTING, P.ABORT): C.DONE,
    (C.STREAMING, P.MESSAGE): C.STREAMING,
    (C.STREAMING, P.STATUS): C.DONE,
    (C.STREAMING, P.ABORT): C.DONE,
    (C.DONE, P.ABORT): C.DONE,
}


class CallListener(Protocol):
    """Receives what a driver reports of a call; every method is called from its loop and must not block."""

    def started(self) -> None:
        """Client: the response began, and `call.metadata` is there."""

    def messages_received(self, messages: list[bytes]) -> None:
        """Complete messages; each must be consumed (`call.consume`) once it is done with."""

    def peer_ended(self) -> None:
        """Server: the client sends no more."""

    def writable(self) -> None:
        """The call had no room for messages, and has it again."""

    def ended(self, status: Status) -> None:
        """The call is over; nothing more is heard of it."""


class Call:
    """What both sides of a call share."""

    __slots__ = ("_http", "_registry", "deframer", "listener", "metadata", "method", "state", "status", "stream")

    def __init__(self, http: Connection, stream: Stream, method: str, max_message: int, registry: "Registry") -> None:
        self._http = http
        self._registry = registry
        registry[stream.id] = self
        self.stream = stream
        self.method = method
        # Of the request on the server, of the response (once it started) on the client.
        self.metadata: Metadata = ()
        self.deframer = Deframer(max_message)
        self.state = CallState.STARTING
        self.status: Status | None = None
        self.listener: CallListener | None = None  # for drivers

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.method} on stream {self.stream.id}, {self.state.name}>"

    @property
    def has_room(self) -> bool:
        """Whether the next message would be taken; when not, `CallWritable` tells when."""
        stream = self.stream
        return not stream.is_full and ((stream.state is OPEN and stream.end_of_sending is None) or stream.can_send)

    def send(self, *chunks: Chunk) -> None:
        """Queue one message, given in one piece or several; the bytes must not change any more."""
        stream = self.stream
        if self.state is STARTING:
            self._begin()
        if self.status is not None:
            raise RpcFailed(self.method, self.status)
        if stream.is_full:
            raise SendQueueFull(self.method)
        size = 0
        for chunk in chunks:
            size += len(chunk)
        self._http.send_sized_data(stream, (pack_prefix(0, size), *chunks), PREFIX_BYTES + size)

    def _begin(self) -> None:
        """A message is to be sent and the answer has not begun."""

    def consume(self, size: int, messages: int = 1) -> None:
        """The application is done with messages of this size together: the peer may send as much again."""
        self._http.credit(self.stream, size + PREFIX_BYTES * messages)

    def advance(self, step: CallStep) -> None:
        following = TRANSITIONS.get((self.state, step))
        if following is None:
            raise RuntimeError(f"{step.name} in a call that is {self.state.name}")
        self.state = following
        if following is CallState.DONE:
            self._registry.pop(self.stream.id, None)

    def abort(self, status: Status, code: ErrorCode = ErrorCode.CANCEL) -> None:
        """End the call from our side, at once; nothing happens if it is over."""
        if self.state is not CallState.DONE:
            self.advance(CallStep.ABORT)
            self.status = status
            self._http.reset_stream(self.stream, code)


Registry = dict[int, Call]  # the calls of a connection that are not over, by stream


class ClientCall(Call):
    """A call we made."""

    __slots__ = ()

    def end_sending(self) -> None:
        """No more messages from us."""
        if self.stream.can_send:
            self._http.end_stream(self.stream)


class ServerCall(Call):
    """A call the peer made; `timeout_s` is the time it gives us."""

    __slots__ = ("peer_has_ended", "timeout_s")

    def __init__(self, http: Connection, stream: Stream, method: str, max_message: int, registry: "Registry") -> None:
        super().__init__(http, stream, method, max_message, registry)
        self.timeout_s: float | None = None
        self.peer_has_ended = False

    def start(self, metadata: Metadata = ()) -> None:
        """Send the response headers, once; the first message does it too."""
        if self.state is CallState.STARTING:
            headers = (*RESPONSE_HEADERS, *encode_metadata(metadata))
            self.advance(CallStep.HEADERS)
            self._http.send_headers(self.stream, headers)

    def _begin(self) -> None:
        self.start()

    def finish(self, status: Status = OK) -> None:
        """Send the status behind what is queued; a client that is still sending is told to stop."""
        if self.state is CallState.DONE:
            return
        is_first = self.state is CallState.STARTING
        trailers = _status_headers(status)
        self.advance(CallStep.STATUS)
        self.status = status
        if is_first:
            self._http.send_headers(self.stream, (*RESPONSE_HEADERS, *trailers), end_stream=True)
        else:
            self._http.end_stream(self.stream, trailers)


def _status_headers(status: Status) -> Headers:
    headers = [("grpc-status", str(int(status.code)))]
    if status.message:
        headers.append(("grpc-message", encode_message(status.message)))
    return (*headers, *encode_metadata(status.trailers))


RESPONSE_HEADERS: Final = ((":status", "200"), ("content-type", "application/grpc"))


class CallStarted(NamedTuple):
    """Server: a request for a method. Client: the response began; `call.metadata` is there."""

    call: Call


class MessagesReceived(NamedTuple):
    """Complete messages, in order; call `call.consume(len(message))` for each once it is done with."""

    call: Call
    messages: list[bytes]


class PeerEnded(NamedTuple):
    """Server: the client sends no more messages."""

    call: Call


class CallEnded(NamedTuple):
    """The call is over; `is_unprocessed` means it is safe to try again elsewhere."""

    call: Call
    status: Status
    is_unprocessed: bool = False


CallEvent = CallStarted | MessagesReceived | PeerEnded | CallEnded
