"""Plain requests beside the library h2: whatever the split of the bytes, both ends hear the same."""

from typing import Any

import h2.config
import h2.connection
import h2.errors
import h2.events
import pytest
from hypothesis import given
from hypothesis import strategies as st

from garboard.rpc.events import ConnectionEnded, GoingAway
from garboard.rpc.headers import Headers
from garboard.rpc.http_endpoint import HttpEndpoint


class Heard:
    """What a listener has been told."""

    def __init__(self) -> None:
        self.status, self.body, self.end = "", b"", ""

    def answered(self, headers: Headers) -> None:
        self.status = dict(headers)[":status"]

    def received(self, data: bytes) -> None:
        assert not self.end
        self.body += data

    def finished(self) -> None:
        assert not self.end
        self.end = "finished"

    def failed(self, reason: str, *, is_unprocessed: bool) -> None:
        assert not self.end
        self.end = "unprocessed" if is_unprocessed else "failed"


class Pair:
    """Our end, and one of h2; bytes go from one to the other in parts."""

    def __init__(self, split: int = 1_000_000) -> None:
        self.client = HttpEndpoint(authority="server:443")
        self.server = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
        self.server.initiate_connection()
        self.split = split
        self.heard: list[Any] = []
        self.told: list[Any] = []
        self.exchange()

    def exchange(self) -> None:
        while True:
            sent, back = self.client.data_to_send(), self.server.data_to_send()
            if not sent and not back:
                return
            for at in range(0, len(sent), self.split):
                self.heard += self.server.receive_data(sent[at : at + self.split])
            for at in range(0, len(back), self.split):
                self.told += self.client.receive_data(back[at : at + self.split])

    def ask(self, target: str, body: bytes | None = None) -> Heard:
        heard = Heard()
        self.client.request("POST" if body is not None else "GET", target, (("accept", "*/*"),), body, heard)
        self.exchange()
        return heard

    def answer(self, stream: int, body: bytes) -> None:
        self.server.send_headers(stream, [(":status", "200")])
        self.server.send_data(stream, body)
        self.server.end_stream(stream)
        self.exchange()


@given(
    st.lists(st.one_of(st.none(), st.binary(max_size=300)), min_size=1, max_size=8),
    st.lists(st.binary(max_size=3000), min_size=8, max_size=8),
    st.integers(1, 50),
    st.randoms(use_true_random=False),
)
def test_requests_and_answers_are_whole_in_any_order(bodies: Any, answers: list[bytes], split: int, order: Any) -> None:
    pair = Pair(split)
    asked = [pair.ask(f"/{number}", body) for number, body in enumerate(bodies)]
    requests = [each for each in pair.heard if isinstance(each, h2.events.RequestReceived)]
    heads: list[Any] = [dict(each.headers) for each in requests]
    assert [each[":path"] for each in heads] == [f"/{number}" for number in range(len(bodies))]
    received: dict[int, bytes] = {}
    for each in pair.heard:
        if isinstance(each, h2.events.DataReceived):
            received[each.stream_id] = received.get(each.stream_id, b"") + each.data
    assert [received.get(each.stream_id, b"") for each in requests] == [body or b"" for body in bodies]
    numbered = list(enumerate(requests))
    order.shuffle(numbered)
    for number, each in numbered:
        pair.answer(each.stream_id, answers[number])
    assert [(each.status, each.body, each.end) for each in asked] == [
        ("200", answers[number], "finished") for number in range(len(bodies))
    ]
    assert not pair.client.exchanges
    assert not pair.client.http.streams


def test_cancelled_request_is_reset_and_hears_nothing_more() -> None:
    pair = Pair()
    kept, dropped = pair.ask("/kept"), Heard()
    exchange = pair.client.request("GET", "/dropped", (), None, dropped)
    pair.exchange()
    exchange.cancel()
    exchange.cancel()
    pair.exchange()
    resets = [each for each in pair.heard if isinstance(each, h2.events.StreamReset)]
    assert [(each.stream_id, each.error_code) for each in resets] == [(3, h2.errors.ErrorCodes.CANCEL)]
    pair.answer(1, b"x")
    assert (kept.end, dropped.end) == ("finished", "")


@pytest.mark.parametrize(
    ("code", "end"), [(h2.errors.ErrorCodes.REFUSED_STREAM, "unprocessed"), (h2.errors.ErrorCodes.CANCEL, "failed")]
)
def test_reset_says_whether_anything_was_done(code: h2.errors.ErrorCodes, end: str) -> None:
    pair = Pair()
    asked = pair.ask("/")
    pair.server.reset_stream(1, code)
    pair.exchange()
    assert asked.end == end


def test_every_request_fails_with_its_connection() -> None:
    pair = Pair()
    asked = [pair.ask("/") for _ in range(3)]
    pair.client.close("gone")
    assert [each.end for each in asked] == ["failed"] * 3
    other = Pair()
    broken = other.ask("/")
    (ended,) = other.client.receive_data(b"\x00\x00\x01\x06\x00\x00\x00\x00\x00\x00")
    assert isinstance(ended, ConnectionEnded)
    assert broken.end == "failed"


def test_server_that_leaves_says_what_it_did_not_take() -> None:
    pair = Pair()
    taken, left = pair.ask("/"), pair.ask("/")
    pair.server.close_connection(last_stream_id=1)
    (told,) = pair.client.receive_data(pair.server.data_to_send())
    assert isinstance(told, GoingAway)
    assert (taken.end, left.end) == ("", "unprocessed")
    assert not pair.client.http.can_open_stream


def test_answer_that_nobody_consumes_fills_its_own_window_only() -> None:
    pair = Pair()
    heard = Heard()
    exchange = pair.client.request("GET", "/", (), None, heard)
    pair.exchange()
    pair.server.send_headers(1, [(":status", "200")])
    window = pair.server.local_flow_control_window(1)
    for _ in range(window // 16_384):
        pair.server.send_data(1, bytes(16_384))
    pair.exchange()
    assert pair.server.local_flow_control_window(1) < 16_384
    other = pair.ask("/other")
    pair.answer(3, b"x")
    assert other.end == "finished"
    exchange.consume(len(heard.body))
    pair.exchange()
    assert pair.server.local_flow_control_window(1) >= window // 2
