import hpack
import pytest

from garboard.rpc import Http2Config, RpcConfig, RpcFailed, SendQueueFull, frames
from garboard.rpc.calls import Call, CallEnded, CallStarted, ClientCall, MessagesReceived, PeerEnded, ServerCall
from garboard.rpc.endpoint import ClientEndpoint, EndpointEvent, ServerEndpoint
from garboard.rpc.events import ConnectionEnded, GoingAway
from garboard.rpc.headers import HeaderEncoder, Headers
from garboard.rpc.status import Status, StatusCode
from garboard.rpc.violations import ErrorCode
from tests.support.rpc.peers import exchange


class Conversation:
    """A client and a server of ours, with one call begun."""

    def __init__(self, config: RpcConfig | None = None) -> None:
        self.client = ClientEndpoint(authority="localhost", config=config)
        self.server = ServerEndpoint(config=config)
        self.call = self.client.start_call("/S/M", metadata=(("agentid", "a"),), timeout_s=5)
        _, heard = self.carry()
        self.served = next(event.call for event in heard if isinstance(event, CallStarted))
        assert isinstance(self.served, ServerCall)

    def carry(self) -> tuple[list[EndpointEvent], list[EndpointEvent]]:
        return exchange(self.client, self.server)


def messages(events: list[EndpointEvent]) -> list[bytes]:
    return [message for event in events if isinstance(event, MessagesReceived) for message in event.messages]


def end(events: list[EndpointEvent]) -> CallEnded:
    return next(event for event in events if isinstance(event, CallEnded))


def test_unary_call_from_both_sides() -> None:
    talk = Conversation()
    talk.call.send(b"question")
    talk.call.end_sending()
    _, heard = talk.carry()
    assert messages(heard) == [b"question"]
    assert [type(event) for event in heard] == [MessagesReceived, PeerEnded]
    served = talk.served
    assert isinstance(served, ServerCall)
    assert served.timeout_s == pytest.approx(5)
    assert ("agentid", "a") in served.metadata
    served.start((("serverid", "s"), ("count-bin", b"\x01")))
    served.send(b"answer")
    served.finish(Status(StatusCode.OK, trailers=(("note", "n"),)))
    heard, _ = talk.carry()
    assert talk.call.metadata == (("serverid", "s"), ("count-bin", b"\x01"))
    assert messages(heard) == [b"answer"]
    assert end(heard).status == Status(StatusCode.OK, "", (("note", "n"),))
    assert talk.client.calls == talk.server.calls == {}
    assert talk.client.http.streams == talk.server.http.streams == {}


def test_trailers_only_answer() -> None:
    talk = Conversation()
    assert isinstance(talk.served, ServerCall)
    talk.served.finish(Status(StatusCode.NOT_FOUND, "no such thing: 100 % gone\n"))
    heard, _ = talk.carry()
    assert [type(event) for event in heard] == [CallEnded]
    assert end(heard).status == Status(StatusCode.NOT_FOUND, "no such thing: 100 % gone\n")
    assert talk.server.http.streams == {}


def test_status_follows_all_messages_even_when_windows_are_small() -> None:
    talk = Conversation(RpcConfig(http2=Http2Config(stream_window=65_535, send_queue_bytes=2**20)))
    assert isinstance(talk.served, ServerCall)
    for size in (30_000, 30_000, 30_000):
        talk.served.send(bytes(size))
    talk.served.finish()
    heard, _ = talk.carry()
    assert [len(each) for each in messages(heard)] == [30_000, 30_000]
    for message in messages(heard):
        talk.call.consume(len(message))
    heard, _ = talk.carry()
    assert [len(each) for each in messages(heard)] == [30_000]
    assert end(heard).status.is_ok


def test_unread_messages_stop_the_sender_and_reading_starts_it_again() -> None:
    talk = Conversation(RpcConfig(http2=Http2Config(stream_window=65_535, send_queue_bytes=100_000)))
    sent = 0
    received: list[bytes] = []
    for _ in range(100):
        if talk.call.has_room:
            talk.call.send(bytes(10_000))
            sent += 1
        received += messages(talk.carry()[1])
    assert sent < 20
    assert not talk.call.has_room
    with pytest.raises(SendQueueFull):
        talk.call.send(b"x")
    for message in received:
        talk.served.consume(len(message))
    assert len(messages(talk.carry()[1])) > 0
    assert talk.client.take_writable() == [talk.call]


@pytest.mark.parametrize("streams", [1, 4])
def test_message_larger_than_every_window_arrives(streams: int) -> None:
    small = RpcConfig(http2=Http2Config(stream_window=65_535, connection_window=65_535))
    client, server = ClientEndpoint(authority="x", config=small), ServerEndpoint(config=small)
    for _ in range(streams):
        client.start_call("/S/M").send(bytes(1_000_000))
    arrived: list[int] = []
    for _ in range(streams):
        for event in exchange(client, server)[1]:
            if isinstance(event, MessagesReceived):
                arrived += [len(message) for message in event.messages]
                event.call.consume(1_000_000)
    assert arrived == [1_000_000] * streams


def test_windows_are_whole_again_once_all_is_consumed() -> None:
    small = RpcConfig(http2=Http2Config(stream_window=65_535, connection_window=65_535))
    talk = Conversation(small)
    for round_ in range(50):
        talk.call.send(bytes(7_000 + round_ * 1_000))
        for message in messages(talk.carry()[1]):
            talk.served.consume(len(message))
    talk.carry()
    link = talk.server.http
    assert link.receive_window + link._credit == 65_535
    assert talk.served.stream.receive_window + talk.served.stream.credit == 65_535
    assert talk.client.http.outbox.window == link.receive_window


def test_oversize_message_is_refused_with_a_status() -> None:
    talk = Conversation(RpcConfig(max_message=100))
    talk.call.send(bytes(101))
    heard, _ = talk.carry()
    assert end(heard).status.code is StatusCode.RESOURCE_EXHAUSTED
    assert talk.client.http.streams == talk.server.http.streams == {}


def test_oversize_answer_ends_the_call_and_tells_the_server() -> None:
    client, server = ClientEndpoint(authority="x", config=RpcConfig(max_message=100)), ServerEndpoint()
    client.start_call("/S/M")
    _, heard = exchange(client, server)
    served = next(event.call for event in heard if isinstance(event, CallStarted))
    served.send(bytes(101))
    at_client, at_server = exchange(client, server)
    assert end(at_client).status.code is StatusCode.RESOURCE_EXHAUSTED
    assert end(at_server).status.code is StatusCode.CANCELLED


def test_cancelled_call_is_heard_by_the_server() -> None:
    talk = Conversation()
    talk.call.abort(Status(StatusCode.CANCELLED))
    _, heard = talk.carry()
    assert end(heard).status.code is StatusCode.CANCELLED
    assert talk.server.calls == {}
    with pytest.raises(RpcFailed):
        talk.served.send(b"too late")


def test_lost_connection_ends_every_call() -> None:
    talk = Conversation()
    [ended] = talk.client.close("cut")
    assert ended.status == Status(StatusCode.UNAVAILABLE, "cut")


def test_drained_server_finishes_what_it_took_and_takes_no_more() -> None:
    talk = Conversation()
    talk.server.http.shut_down()
    heard, _ = talk.carry()
    assert any(isinstance(event, GoingAway) and event.code is ErrorCode.NO_ERROR for event in heard)
    assert not talk.client.http.can_open_stream
    assert isinstance(talk.served, ServerCall)
    talk.served.finish()
    heard, _ = talk.carry()
    assert end(heard).status.is_ok


def test_calls_the_peer_never_saw_may_be_tried_again() -> None:
    talk = Conversation()
    later = talk.client.start_call("/S/M")
    talk.client.data_to_send()
    heard = talk.client.receive_data(frames.goaway(1, ErrorCode.NO_ERROR))
    ended = end(heard)
    assert ended.call is later
    assert ended.is_unprocessed
    assert talk.call.status is None


class RawServer:
    """A client of ours in front of raw frames."""

    def __init__(self) -> None:
        self.client = ClientEndpoint(authority="x")
        self.call: ClientCall = self.client.start_call("/S/M")
        self._encoder = HeaderEncoder()
        self.client.receive_data(frames.settings({}))

    def headers(self, headers: Headers, *, end_stream: bool = False) -> bytes:
        return frames.header_frames(1, self._encoder.encode(headers), end_stream=end_stream, max_frame=16_384)

    def status(self, *data: bytes) -> Status:
        return end(self.client.receive_data(b"".join(data))).status


GRPC: Headers = ((":status", "200"), ("content-type", "application/grpc"))


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        pytest.param(((":status", "503"),), StatusCode.UNAVAILABLE, id="proxy says 503"),
        pytest.param(((":status", "404"),), StatusCode.UNIMPLEMENTED, id="proxy says 404"),
        pytest.param(((":status", "200"), ("content-type", "text/html")), StatusCode.UNKNOWN, id="a web page"),
        pytest.param((*GRPC, ("grpc-status", "99")), StatusCode.UNKNOWN, id="status out of range"),
        pytest.param((*GRPC, ("grpc-status", "x")), StatusCode.UNKNOWN, id="status not a number"),
        pytest.param(GRPC, StatusCode.UNKNOWN, id="no status"),
        pytest.param((*GRPC, ("grpc-status", "0"), ("k-bin", "*")), StatusCode.INTERNAL, id="broken metadata"),
    ],
)
def test_odd_answer_becomes_a_status(headers: Headers, code: StatusCode) -> None:
    server = RawServer()
    assert server.status(server.headers(headers, end_stream=True)).code is code


def test_answer_without_trailers_is_an_error() -> None:
    server = RawServer()
    data = frames.frame(frames.DATA, frames.END_STREAM, 1, b"\x00\x00\x00\x00\x00")
    assert server.status(server.headers(GRPC), data).code is StatusCode.INTERNAL


def test_answer_cut_in_a_message_is_an_error_even_if_it_says_ok() -> None:
    server = RawServer()
    data = frames.frame(frames.DATA, 0, 1, b"\x00\x00\x00\x00\x09half")
    trailers = server.headers((("grpc-status", "0"),), end_stream=True)
    assert server.status(server.headers(GRPC), data, trailers).code is StatusCode.INTERNAL


def test_interim_responses_are_skipped() -> None:
    server = RawServer()
    answer = server.headers((*GRPC, ("grpc-status", "0")), end_stream=True)
    assert server.status(server.headers(((":status", "103"),)), answer).is_ok


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (ErrorCode.REFUSED_STREAM, StatusCode.UNAVAILABLE),
        (ErrorCode.CANCEL, StatusCode.CANCELLED),
        (ErrorCode.ENHANCE_YOUR_CALM, StatusCode.RESOURCE_EXHAUSTED),
        (ErrorCode.PROTOCOL_ERROR, StatusCode.INTERNAL),
    ],
)
def test_reset_becomes_a_status(code: ErrorCode, status: StatusCode) -> None:
    server = RawServer()
    assert server.status(frames.rst_stream(1, code)).code is status


def request_headers(**changed: str | None) -> Headers:
    usual = {
        ":method": "POST",
        ":scheme": "http",
        ":path": "/S/M",
        ":authority": "%2Frun%2Fx.sock",
        "content-type": "application/grpc",
    }
    merged = usual | {name.replace("_", "-").replace("--", ":"): value for name, value in changed.items()}
    return tuple((name, value) for name, value in merged.items() if value is not None)


@pytest.mark.parametrize(
    ("headers", "answer"),
    [
        pytest.param(request_headers(__method="GET"), {":status": "405"}, id="GET"),
        pytest.param(request_headers(content_type="text/plain"), {":status": "415"}, id="not gRPC"),
        pytest.param(request_headers(content_type=None), {":status": "415"}, id="no content type"),
        pytest.param(request_headers(grpc_timeout="soon"), {"grpc-status": "13"}, id="broken timeout"),
        pytest.param(request_headers(grpc_encoding="gzip"), {"grpc-status": "12"}, id="compressed"),
        pytest.param(request_headers(k_bin="*"), {"grpc-status": "13"}, id="broken metadata"),
    ],
)
def test_odd_request_is_answered_without_a_call(headers: Headers, answer: dict[str, str]) -> None:
    heard, answers = raw_request(headers)
    assert [type(event).__name__ for event in heard] == ["PeerSettled"]
    assert answer.items() <= answers.items()


def test_any_authority_is_taken() -> None:
    heard, _ = raw_request(request_headers())
    assert isinstance(heard[1], CallStarted)


def raw_request(headers: Headers) -> tuple[list[EndpointEvent], dict[str, str]]:
    """What our server hears of these request headers, and the headers it answers with."""
    server = ServerEndpoint()
    block = frames.header_frames(1, HeaderEncoder().encode(headers), end_stream=False, max_frame=16_384)
    heard = server.receive_data(frames.PREFACE + frames.settings({}) + block)
    found = [each for each in frames.FrameReader(2**24).feed(server.data_to_send()) if each.kind == frames.HEADERS]
    if not found:
        return heard, {}
    return heard, {str(name): str(value) for name, value in hpack.Decoder().decode(bytes(found[0].payload))}


def test_garbage_ends_the_connection_and_its_calls() -> None:
    talk = Conversation()
    heard = talk.client.receive_data(b"\xff" * 100)
    assert [type(event) for event in heard] == [CallEnded, ConnectionEnded]


def test_call_shows_no_secrets() -> None:
    call: Call = Conversation().call
    assert repr(call) == "<ClientCall /S/M on stream 1, STARTING>"
