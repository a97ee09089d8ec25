"""Plain HTTP requests over one connection, without I/O: the client's end, for answers that may last for hours."""

from typing import Protocol

from garboard.rpc import events as http
from garboard.rpc.calls import Call, CallEnded
from garboard.rpc.endpoint import Endpoint, EndpointEvent, RpcConfig
from garboard.rpc.headers import Headers
from garboard.rpc.status import Status
from garboard.rpc.streams import Stream
from garboard.rpc.violations import ErrorCode


class AnswerListener(Protocol):
    """What becomes of one request. After `finished` or `failed` nothing comes any more."""

    def answered(self, headers: Headers) -> None:
        """The answer begins."""

    def received(self, data: bytes) -> None:
        """A part of its body; it must be given back by `HttpExchange.consume`."""

    def finished(self) -> None:
        """The answer is whole."""

    def failed(self, reason: str, *, is_unprocessed: bool) -> None:
        """It will not come; `is_unprocessed` if the peer promises that it did nothing."""


class HttpExchange:
    """One request that is under way."""

    def __init__(self, endpoint: "HttpEndpoint", stream: Stream, listener: AnswerListener) -> None:
        self.listener = listener
        self._endpoint = endpoint
        self._stream = stream

    def consume(self, size: int) -> None:
        """Give back so many bytes of the answer, which lets the peer send as many more."""
        self._endpoint.http.credit(self._stream, size)

    def cancel(self) -> None:
        """Give the request up, unless it is over; its listener hears nothing more."""
        if self._endpoint.exchanges.pop(self._stream.id, None) is not None:
            self._endpoint.http.reset_stream(self._stream, ErrorCode.CANCEL)


class HttpEndpoint(Endpoint):
    """The end that asks; it has no calls in the sense of gRPC, so the drivers see the connection's events only."""

    def __init__(self, *, authority: str, config: RpcConfig | None = None) -> None:
        super().__init__(is_client=True, config=config)
        self.exchanges: dict[int, HttpExchange] = {}
        self._authority = authority

    def request(
        self, method: str, target: str, headers: Headers, body: bytes | None, listener: AnswerListener
    ) -> HttpExchange:
        """Begin a request; the caller has looked at `http.can_open_stream`."""
        pseudo = ((":method", method), (":scheme", "https"), (":authority", self._authority), (":path", target))
        length = (("content-length", str(len(body))),) if body is not None else ()
        stream = self.http.open_stream((*pseudo, *headers, *length), end_stream=body is None)
        if body is not None:
            if body:
                self.http.send_data(stream, body)
            self.http.end_stream(stream)
        exchange = self.exchanges[stream.id] = HttpExchange(self, stream, listener)
        return exchange

    def receive_data(self, data: bytes | bytearray | memoryview) -> list[EndpointEvent]:
        told: list[EndpointEvent] = []
        for event in self.http.receive_data(data):
            match event:
                case http.DataReceived():
                    self._on_body(event)
                case http.HeadersReceived():
                    self._on_head(event)
                case http.StreamReset(stream, code, reason, _, is_unprocessed):
                    self._give_up(stream, reason or code.name, is_unprocessed=is_unprocessed)
                case http.ConnectionEnded():
                    told.extend(self._on_end(event))
                case http.PingAcknowledged() | http.PeerSettled() | http.GoingAway():
                    told.append(event)
        return told

    def take_writable(self) -> list[Call]:
        return []  # a request is queued as a whole

    def close(self, reason: str, code: ErrorCode = ErrorCode.NO_ERROR) -> list[CallEnded]:
        """The connection is over, and with it every request."""
        self.http.close(code, reason)
        ended, self.exchanges = self.exchanges, {}
        for each in ended.values():
            each.listener.failed(reason, is_unprocessed=False)
        return []

    def _on_body(self, event: http.DataReceived) -> None:
        exchange = self.exchanges.get(event.stream.id)
        if exchange is None:
            self.http.credit(event.stream, len(event.data))
            return
        if event.data:
            exchange.listener.received(bytes(event.data))
        if event.ended:
            self._finish(event.stream)

    def _on_head(self, event: http.HeadersReceived) -> list[EndpointEvent]:
        exchange = self.exchanges.get(event.stream.id)
        if exchange is not None and not event.is_trailers:
            exchange.listener.answered(event.headers)
        if event.ended:
            self._finish(event.stream)
        return []

    def _finish(self, stream: Stream) -> None:
        exchange = self.exchanges.pop(stream.id, None)
        if exchange is not None:
            exchange.listener.finished()

    def _give_up(self, stream: Stream, reason: str, *, is_unprocessed: bool) -> None:
        exchange = self.exchanges.pop(stream.id, None)
        if exchange is not None:
            exchange.listener.failed(reason, is_unprocessed=is_unprocessed)

    # Of gRPC, and never called: this end takes in what arrives by itself.

    def _on_headers(self, event: http.HeadersReceived) -> list[EndpointEvent]:
        return self._on_head(event)

    def _on_peer_end(self, call: Call) -> EndpointEvent:
        raise AssertionError("there are no calls")

    def _refuse(self, call: Call, status: Status) -> CallEnded:
        raise AssertionError("there are no calls")
