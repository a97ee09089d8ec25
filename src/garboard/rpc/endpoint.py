"""gRPC over one connection, without I/O: the client's end and the server's end.

They turn what happens on streams into what happens in calls; carrying the bytes and keeping the time is left to the
drivers.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from garboard.rpc import events as http
from garboard.rpc.calls import (
    Call,
    CallEnded,
    CallEvent,
    CallStarted,
    CallState,
    CallStep,
    ClientCall,
    MessagesReceived,
    PeerEnded,
    Registry,
    ServerCall,
)
from garboard.rpc.connection import Connection
from garboard.rpc.headers import Headers
from garboard.rpc.limits import Http2Config
from garboard.rpc.messages import DEFAULT_MAX_MESSAGE, BadMessage
from garboard.rpc.metadata import (
    BadText,
    Metadata,
    decode_message,
    decode_metadata,
    decode_timeout,
    encode_metadata,
    encode_timeout,
    header,
    is_grpc_content_type,
)
from garboard.rpc.status import Status, StatusCode, status_of_http, status_of_reset
from garboard.rpc.violations import ErrorCode

EndpointEvent = CallEvent | http.PingAcknowledged | http.PeerSettled | http.GoingAway | http.ConnectionEnded


@dataclass(frozen=True, slots=True, kw_only=True)
class RpcConfig:
    """How an end of a gRPC connection behaves."""

    max_message: int = DEFAULT_MAX_MESSAGE
    user_agent: str = "garboard"
    http2: Http2Config = field(default_factory=Http2Config)


class Endpoint(ABC):
    """What both ends do alike."""

    def __init__(self, *, is_client: bool, config: RpcConfig | None = None) -> None:
        self.config = config or RpcConfig()
        self.http = Connection(is_client=is_client, config=self.config.http2)
        self.data_to_send = self.http.data_to_send
        self.calls: Registry = {}

    def receive_data(self, data: bytes | bytearray | memoryview) -> list[EndpointEvent]:
        """Take in what arrived and tell what it meant for the calls."""
        told: list[EndpointEvent] = []
        for event in self.http.receive_data(data):
            if type(event) is http.DataReceived:  # nearly all of them: the pattern below takes longer
                self._on_data(event, told)
                continue
            match event:
                case http.HeadersReceived():
                    told.extend(self._on_headers(event))
                case http.StreamReset():
                    told.extend(self._on_reset(event))
                case http.ConnectionEnded():
                    told.extend(self._on_end(event))
                case http.PingAcknowledged() | http.PeerSettled() | http.GoingAway():
                    told.append(event)
                case http.DataReceived():
                    pass
        return told

    def take_writable(self) -> list[Call]:
        """Calls that had no room and have it again."""
        return [self.calls[stream.id] for stream in self.http.outbox.take_writable() if stream.id in self.calls]

    def close(self, reason: str, code: ErrorCode = ErrorCode.NO_ERROR) -> list[CallEnded]:
        """The connection is over, by our will or because the transport is gone, and with it every call."""
        self.http.close(code, reason)
        status = Status(StatusCode.UNAVAILABLE, reason)
        return [self._end(call, status) for call in list(self.calls.values())]

    def _end(self, call: Call, status: Status, *, is_unprocessed: bool = False) -> CallEnded:
        if call.state is not CallState.DONE:
            call.advance(CallStep.ABORT)
            call.status = status
        return CallEnded(call, call.status or status, is_unprocessed)

    def _fail(self, call: Call, status: Status) -> CallEnded:
        """The peer broke the rules of gRPC: the call ends here and the peer is told to stop."""
        call.abort(status)
        return self._end(call, status)

    def _on_data(self, event: http.DataReceived, told: list[EndpointEvent]) -> None:
        stream, data, ended = event
        call = self.calls.get(stream.id)
        if call is None:
            self.http.credit(stream, len(data))
            return
        deframer = call.deframer
        held_before = deframer.held_bytes
        try:
            messages = deframer.feed(data)
        except BadMessage as bad:
            self.http.credit(stream, len(data))
            told.append(self._refuse(call, Status(bad.code, bad.reason)))
            return
        if deframer.held_bytes != held_before:
            self.http.credit(stream, deframer.held_bytes - held_before)
        if messages:
            told.append(MessagesReceived(call, messages))
        if ended:
            told.append(self._on_peer_end(call))

    def _on_reset(self, event: http.StreamReset) -> list[EndpointEvent]:
        call = self.calls.get(event.stream.id)
        if call is None:
            return []
        status = status_of_reset(event.code, event.reason, is_unprocessed=event.is_unprocessed)
        return [self._end(call, status, is_unprocessed=event.is_unprocessed)]

    def _on_end(self, event: http.ConnectionEnded) -> list[EndpointEvent]:
        return [*self.close(event.reason), event]

    @abstractmethod
    def _on_headers(self, event: http.HeadersReceived) -> list[EndpointEvent]:
        """The headers or the trailers of a call."""

    @abstractmethod
    def _on_peer_end(self, call: Call) -> EndpointEvent:
        """The peer will send nothing more on this call."""

    @abstractmethod
    def _refuse(self, call: Call, status: Status) -> CallEnded:
        """The peer sent a message that cannot be taken."""


class ClientEndpoint(Endpoint):
    """The end that makes calls."""

    def __init__(self, *, authority: str, scheme: str = "http", config: RpcConfig | None = None) -> None:
        super().__init__(is_client=True, config=config)
        self._target = ((":scheme", scheme), (":authority", authority))

    def start_call(self, method: str, *, metadata: Metadata = (), timeout_s: float | None = None) -> ClientCall:
        """Begin a call of `/Service/Method`; the caller has looked at `http.can_open_stream`."""
        headers: Headers = (
            (":method", "POST"),
            (":path", method),
            *self._target,
            ("te", "trailers"),
            ("content-type", "application/grpc"),
            ("user-agent", self.config.user_agent),
            *((("grpc-timeout", encode_timeout(timeout_s)),) if timeout_s is not None else ()),
            *encode_metadata(metadata),
        )
        stream = self.http.open_stream(headers)
        return ClientCall(self.http, stream, method, self.config.max_message, self.calls)

    def _on_headers(self, event: http.HeadersReceived) -> list[EndpointEvent]:
        call = self.calls.get(event.stream.id)
        if call is None:
            return []
        try:
            metadata = decode_metadata(event.headers)
        except BadText as bad:
            return [self._fail(call, Status(StatusCode.INTERNAL, str(bad)))]
        if not event.is_trailers:
            refusal = _flaw_of_answer(event.headers)
            if refusal is not None:
                return [self._fail(call, refusal)]
        if event.ended:
            return [self._finish(call, event.headers, metadata)]
        call.advance(CallStep.HEADERS)
        call.metadata = metadata
        return [CallStarted(call)]

    def _finish(self, call: Call, headers: Headers, trailers: Metadata) -> CallEnded:
        code = header(headers, "grpc-status")
        if code is None:
            return self._fail(call, Status(StatusCode.UNKNOWN, "the answer ended without a status"))
        status = Status(StatusCode.parse(code), decode_message(header(headers, "grpc-message") or ""), trailers)
        if status.is_ok and call.deframer.held_bytes:
            status = Status(StatusCode.INTERNAL, "the answer ended in the middle of a message")
        call.advance(CallStep.STATUS)
        call.status = status
        # The server has said all it will: what we still wanted to send is of no use to it.
        self.http.reset_stream(call.stream, ErrorCode.CANCEL)
        return self._end(call, status)

    def _on_peer_end(self, call: Call) -> EndpointEvent:
        return self._fail(call, Status(StatusCode.INTERNAL, "the answer ended without trailers"))

    def _refuse(self, call: Call, status: Status) -> CallEnded:
        return self._fail(call, status)


class ServerEndpoint(Endpoint):
    """The end that answers calls."""

    def __init__(self, *, config: RpcConfig | None = None) -> None:
        super().__init__(is_client=False, config=config)

    def _on_headers(self, event: http.HeadersReceived) -> list[EndpointEvent]:
        if event.is_trailers:
            call = self.calls.get(event.stream.id)
            return [self._on_peer_end(call)] if call else []
        refusal = _flaw_of_request(event.headers)
        if refusal is not None:
            self.http.send_headers(event.stream, refusal, end_stream=True)
            return []
        method = header(event.headers, ":path") or ""
        call = ServerCall(self.http, event.stream, method, self.config.max_message, self.calls)
        try:
            call.metadata = decode_metadata(event.headers)
            timeout = header(event.headers, "grpc-timeout")
            call.timeout_s = decode_timeout(timeout) if timeout is not None else None
        except BadText as bad:
            call.finish(Status(StatusCode.INTERNAL, str(bad)))
            return []
        if header(event.headers, "grpc-encoding") not in (None, "identity"):
            call.finish(Status(StatusCode.UNIMPLEMENTED, "only the identity encoding is understood here"))
            return []
        return [CallStarted(call), *([self._on_peer_end(call)] if event.ended else [])]

    def _on_peer_end(self, call: Call) -> EndpointEvent:
        assert isinstance(call, ServerCall)
        if call.deframer.held_bytes:
            return self._refuse(call, Status(StatusCode.INTERNAL, "the request ended in the middle of a message"))
        call.peer_has_ended = True
        return PeerEnded(call)

    def _refuse(self, call: Call, status: Status) -> CallEnded:
        assert isinstance(call, ServerCall)
        call.finish(status)
        return self._end(call, status)


def _flaw_of_answer(headers: Headers) -> Status | None:
    http_status = header(headers, ":status") or ""
    if http_status != "200":
        return status_of_http(http_status)
    if not is_grpc_content_type(header(headers, "content-type")):
        return Status(StatusCode.UNKNOWN, "the answer is not gRPC")
    if header(headers, "grpc-encoding") not in (None, "identity"):
        return Status(StatusCode.INTERNAL, "the answer is compressed, which nobody asked for")
    return None


def _flaw_of_request(headers: Headers) -> Headers | None:
    """The plain HTTP answer for what is not a gRPC request."""
    if header(headers, ":method") != "POST":
        return ((":status", "405"), ("allow", "POST"))
    if not is_grpc_content_type(header(headers, "content-type")):
        return ((":status", "415"),)
    return None
