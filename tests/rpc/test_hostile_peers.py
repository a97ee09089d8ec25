"""Every limit against a peer that means harm, one test each (RFC 9113 §10.5 and the CVEs since)."""

import contextlib

import h2.config
import h2.connection
import h2.exceptions
import pytest

from garboard.rpc import frames
from garboard.rpc.connection import Connection
from garboard.rpc.endpoint import ServerEndpoint
from garboard.rpc.events import StreamReset
from garboard.rpc.headers import HeaderEncoder
from garboard.rpc.limits import Http2Config, Limits, Rate
from garboard.rpc.violations import ErrorCode
from tests.support.rpc.attacks import attacks_of_a_client, attacks_of_either_end
from tests.support.rpc.peers import REQUEST, Attacker, end_of

CALM = ErrorCode.ENHANCE_YOUR_CALM


def stream_ids(count: int, start: int = 1) -> range:
    return range(start, start + 2 * count, 2)


def test_rapid_reset_ends_the_connection() -> None:
    attacker = Attacker()
    for stream_id in stream_ids(1000):
        assert (
            end_of(attacker.sends(attacker.request(stream_id), frames.rst_stream(stream_id, ErrorCode.CANCEL))) is None
        )
    ended = end_of(attacker.sends(attacker.request(2001), frames.rst_stream(2001, ErrorCode.CANCEL)))
    assert ended is not None
    assert ended.code is CALM


def test_resets_at_a_bearable_rate_are_borne() -> None:
    attacker = Attacker()
    for stream_id in stream_ids(3000):
        attacker.clock.now += 1 / 30
        assert (
            end_of(attacker.sends(attacker.request(stream_id), frames.rst_stream(stream_id, ErrorCode.CANCEL))) is None
        )


def test_streams_that_we_must_reset_count_too() -> None:
    # CVE-2025-8671: the peer makes mistakes on purpose, so that we do the resetting.
    attacker = Attacker()
    ended = None
    for stream_id in stream_ids(1200):
        ended = ended or end_of(attacker.sends(attacker.request(stream_id), frames.window_update(stream_id, 0)))
    assert ended is not None
    assert ended.code is CALM


def test_refused_streams_count_too() -> None:
    attacker = Attacker(Http2Config(limits=Limits(concurrent_streams=1)))
    ended = end_of(attacker.sends(*(attacker.request(stream_id) for stream_id in stream_ids(1200))))
    assert ended is not None
    assert ended.code is CALM


def test_more_streams_than_allowed_are_refused_one_by_one() -> None:
    attacker = Attacker(Http2Config(limits=Limits(concurrent_streams=2)))
    attacker.victim.data_to_send()
    attacker.sends(*(attacker.request(stream_id) for stream_id in stream_ids(3)))
    assert attacker.victim.data_to_send() == frames.rst_stream(5, ErrorCode.REFUSED_STREAM)
    assert sorted(attacker.victim.streams) == [1, 3]


@pytest.mark.parametrize("fragment", [b"", b"\x82"], ids=["empty", "small"])
def test_continuation_flood_ends_the_connection(fragment: bytes) -> None:
    attacker = Attacker()
    flood = [frames.frame(frames.CONTINUATION, 0, 1, fragment)] * 20
    ended = end_of(attacker.sends(frames.frame(frames.HEADERS, 0, 1, b"\x83"), *flood))
    assert ended is not None
    assert ended.code is CALM


def test_header_block_over_the_limit_is_not_collected() -> None:
    attacker = Attacker()
    ended = end_of(
        attacker.sends(
            frames.frame(frames.HEADERS, 0, 1, b"x" * 40_000), frames.frame(frames.CONTINUATION, 0, 1, b"x" * 40_000)
        )
    )
    assert ended is not None
    assert ended.code is CALM


def test_header_bomb_is_not_unpacked() -> None:
    # One entry of 4,000 bytes in the dynamic table, then a byte for each repetition of it.
    attacker = Attacker()
    block = bytearray(attacker._encoder.encode((*REQUEST, ("bomb", "x" * 3900))))
    block += b"\xbe" * 2000
    ended = end_of(attacker.sends(frames.frame(frames.HEADERS, frames.END_HEADERS, 1, bytes(block))))
    assert ended is not None
    assert ended.code is CALM


def bomb_of_values(endpoint: ServerEndpoint) -> bytes:
    """A small request for thousands of values: one entry of the table is all commas, and each later byte repeats it."""
    encoder = HeaderEncoder()
    first = encoder.encode((*REQUEST, ("x-bin", "," * 3600)))
    endpoint.receive_data(frames.PREFACE + frames.settings({}))
    endpoint.receive_data(frames.header_frames(1, first, end_stream=True, max_frame=16_384))
    return frames.frame(frames.HEADERS, frames.END_HEADERS, 3, encoder.encode(REQUEST) + b"\xbe" * 14)


def test_values_of_a_small_request_are_bounded() -> None:
    endpoint = ServerEndpoint()
    bomb = bomb_of_values(endpoint)
    assert len(bomb) < 60
    assert endpoint.receive_data(bomb) == []  # refused before anybody hears of a call
    assert not endpoint.http.is_closed


def test_fields_of_a_small_request_are_bounded() -> None:
    attacker = Attacker(Http2Config(limits=Limits(header_fields=64)))
    block = attacker._encoder.encode(REQUEST) + b"\x90" * 60  # accept-encoding, of the static table
    ended = end_of(attacker.sends(frames.frame(frames.HEADERS, frames.END_HEADERS, 1, block)))
    assert ended is not None
    assert ended.code is CALM


def test_headers_of_a_connection_are_bounded_however_small_they_arrive() -> None:
    attacker = Attacker(Http2Config(limits=Limits(header_bytes=Rate(128 * 1024, 8 * 1024))))
    attacker.sends(attacker.request(1, (*REQUEST, ("x", "y" * 3600))))
    ended, sent = None, 0
    for stream_id in stream_ids(100, start=3):
        block = attacker._encoder.encode(REQUEST) + b"\xbe" * 10
        sent += len(block)
        ended = ended or end_of(attacker.sends(frames.frame(frames.HEADERS, frames.END_HEADERS, stream_id, block)))
    assert ended is not None
    assert (ended.code, ended.reason) == (CALM, "too many bytes of headers")
    assert sent < 4000


def test_ordinary_requests_at_a_high_rate_are_borne() -> None:
    attacker = Attacker()
    for stream_id in stream_ids(20_000):
        attacker.clock.now += 1 / 5000
        assert end_of(attacker.sends(attacker.request(stream_id, end_stream=True))) is None
        attacker.victim.reset_stream(attacker.victim.streams[stream_id], ErrorCode.NO_ERROR)
        late = frames.window_update(stream_id, 5) + frames.rst_stream(stream_id, ErrorCode.CANCEL)
        attacker.victim.data_to_send()
        if stream_id % 3 == 0:  # what it had sent before it knew
            assert end_of(attacker.sends(late)) is None


@pytest.mark.parametrize(
    "useless",
    [
        pytest.param(frames.window_update(0, 1), id="of the connection"),
        pytest.param(frames.window_update(1, 1), id="of a stream"),
    ],
)
def test_window_updates_that_answer_nothing_end_the_connection(useless: bytes) -> None:
    attacker = Attacker()
    ended = end_of(attacker.sends(attacker.request(1), *[useless] * 5000))
    assert ended is not None
    assert (ended.code, ended.reason) == (CALM, "too many window updates")


def test_window_updates_that_answer_data_are_free() -> None:
    attacker = Attacker()
    attacker.sends(attacker.request(1))
    stream = attacker.victim.streams[1]
    attacker.victim.send_headers(stream, ((":status", "200"),))
    for _ in range(1000):
        attacker.victim.send_data(stream, bytes(16_384))
        attacker.victim.data_to_send()
        answers = [frames.window_update(0, 1024), frames.window_update(1, 1024)] * 16
        assert end_of(attacker.sends(*answers)) is None


@pytest.mark.parametrize(
    "stray",
    [
        pytest.param(frames.rst_stream(1, ErrorCode.CANCEL), id="reset"),
        pytest.param(frames.frame(frames.DATA, 0, 1), id="empty data"),
        pytest.param(frames.window_update(1, 1), id="window update"),
    ],
)
def test_frames_for_a_stream_that_is_over_end_the_connection_when_they_do_not_stop(stray: bytes) -> None:
    attacker = Attacker()
    attacker.sends(attacker.request(1))
    attacker.victim.reset_stream(attacker.victim.streams[1], ErrorCode.NO_ERROR)
    ended = end_of(attacker.sends(*[stray] * 5000))
    assert ended is not None
    assert ended.code is CALM


def test_settings_flood_ends_the_connection() -> None:
    attacker = Attacker()
    ended = end_of(attacker.sends(*[frames.settings({})] * 150))
    assert ended is not None
    assert ended.code is CALM


def test_ping_flood_ends_the_connection() -> None:
    attacker = Attacker()
    ended = None
    for _ in range(120):
        ended = ended or end_of(attacker.sends(*[frames.ping(b"12345678")] * 100))
        attacker.victim.data_to_send()
    assert ended is not None
    assert ended.code is CALM


def test_answers_nobody_reads_do_not_pile_up() -> None:
    attacker = Attacker()
    ended = end_of(attacker.sends(*[frames.ping(b"12345678")] * 2100))
    assert ended is not None
    assert ended.code is CALM
    assert len(attacker.victim.data_to_send()) < 2100 * 17


def test_pings_closer_than_agreed_earn_strikes() -> None:
    attacker = Attacker(Http2Config(limits=Limits(ping_interval_s=30.0)))
    heard = [end_of(attacker.sends(frames.ping(b"12345678"))) for _ in range(4)]
    assert [ended.reason if ended else None for ended in heard] == [None, None, None, "too_many_pings"]


def test_pings_of_a_polite_client_earn_none() -> None:
    attacker = Attacker(Http2Config(limits=Limits(ping_interval_s=30.0)))
    for _ in range(10):
        attacker.clock.now += 30
        assert end_of(attacker.sends(frames.ping(b"12345678"))) is None


def test_pings_that_measure_our_data_earn_none() -> None:
    attacker = Attacker(Http2Config(limits=Limits(ping_interval_s=30.0)))
    attacker.sends(attacker.request(1))
    stream = attacker.victim.streams[1]
    attacker.victim.send_headers(stream, ((":status", "200"),))
    for _ in range(10):
        attacker.victim.send_data(stream, b"x")
        attacker.victim.data_to_send()
        assert end_of(attacker.sends(frames.ping(b"12345678"))) is None


@pytest.mark.parametrize(
    "useless",
    [
        pytest.param(frames.frame(frames.DATA, 0, 1), id="empty data"),
        pytest.param(frames.frame(frames.PRIORITY, 0, 1, b"12345"), id="priority"),
        pytest.param(frames.frame(0x77, 0, 1, b"12345"), id="unknown type"),
    ],
)
def test_frames_without_content_end_the_connection(useless: bytes) -> None:
    attacker = Attacker()
    ended = end_of(attacker.sends(attacker.request(1), *[useless] * 2001))
    assert ended is not None
    assert ended.code is CALM


def test_unknown_frames_are_skipped() -> None:
    attacker = Attacker()
    events = attacker.sends(frames.frame(0x77, 0xFF, 9, b"hello"), attacker.request(1))
    assert len(events) == 1
    assert end_of(events) is None


@pytest.mark.parametrize(
    ("increment", "code"), [(0, ErrorCode.PROTOCOL_ERROR), (2**31 - 1, ErrorCode.FLOW_CONTROL_ERROR)]
)
def test_window_of_the_connection_cannot_overflow(increment: int, code: ErrorCode) -> None:
    ended = end_of(Attacker().sends(frames.window_update(0, increment)))
    assert ended is not None
    assert ended.code is code


def test_window_overflow_of_a_stream_ends_that_stream_only() -> None:
    attacker = Attacker()
    attacker.sends(attacker.request(1), attacker.request(3))
    [event] = attacker.sends(frames.window_update(1, 2**31 - 1))
    assert isinstance(event, StreamReset)
    assert event.code is ErrorCode.FLOW_CONTROL_ERROR
    assert list(attacker.victim.streams) == [3]


def test_settings_cannot_overflow_the_windows_of_open_streams() -> None:
    attacker = Attacker()
    attacker.sends(attacker.request(1), frames.window_update(1, 2**31 - 1 - 65_535))
    ended = end_of(attacker.sends(frames.settings({4: 65_536})))
    assert ended is not None
    assert ended.code is ErrorCode.FLOW_CONTROL_ERROR


def test_data_beyond_the_streams_window_ends_the_stream() -> None:
    attacker = Attacker(Http2Config(stream_window=65_535))
    attacker.sends(attacker.request(1))
    data = frames.frame(frames.DATA, 0, 1, bytes(16_384))
    events = attacker.sends(*[data] * 4)
    assert [type(event).__name__ for event in events] == ["DataReceived"] * 3 + ["StreamReset"]


def test_data_beyond_the_connections_window_ends_the_connection() -> None:
    attacker = Attacker(Http2Config(stream_window=2**20, connection_window=65_535))
    attacker.sends(attacker.request(1))
    ended = end_of(attacker.sends(*[frames.frame(frames.DATA, 0, 1, bytes(16_384))] * 4))
    assert ended is not None
    assert ended.code is ErrorCode.FLOW_CONTROL_ERROR


def test_data_for_a_stream_that_is_over_gives_its_window_back() -> None:
    attacker = Attacker(Http2Config(connection_window=65_535))
    attacker.sends(attacker.request(1))
    attacker.victim.reset_stream(attacker.victim.streams[1], ErrorCode.CANCEL)
    for _ in range(20):
        assert end_of(attacker.sends(frames.frame(frames.DATA, 0, 1, bytes(16_384)))) is None
    assert frames.window_update(0, 16_384) in attacker.victim.data_to_send()


@pytest.mark.parametrize(
    ("data", "code"),
    [
        pytest.param(frames.frame(frames.DATA, 0, 0, b"x"), ErrorCode.PROTOCOL_ERROR, id="data on stream 0"),
        pytest.param(frames.frame(frames.DATA, 0, 7, b"x"), ErrorCode.PROTOCOL_ERROR, id="data on an idle stream"),
        pytest.param(frames.frame(frames.HEADERS, 4, 2, b"\x82"), ErrorCode.PROTOCOL_ERROR, id="even stream number"),
        pytest.param(frames.frame(frames.PING, 0, 0, b"x"), ErrorCode.FRAME_SIZE_ERROR, id="short ping"),
        pytest.param(frames.frame(frames.PING, 0, 1, b"12345678"), ErrorCode.PROTOCOL_ERROR, id="ping on a stream"),
        pytest.param(frames.frame(frames.SETTINGS, 0, 0, b"x"), ErrorCode.FRAME_SIZE_ERROR, id="broken settings"),
        pytest.param(frames.frame(frames.SETTINGS, 1, 0, b"x" * 6), ErrorCode.FRAME_SIZE_ERROR, id="full settings ack"),
        pytest.param(frames.settings({5: 1}), ErrorCode.PROTOCOL_ERROR, id="tiny frame size"),
        pytest.param(frames.settings({4: 2**31}), ErrorCode.FLOW_CONTROL_ERROR, id="huge window"),
        pytest.param(frames.settings({2: 2}), ErrorCode.PROTOCOL_ERROR, id="push neither on nor off"),
        pytest.param(frames.frame(frames.PUSH_PROMISE, 4, 1, b"1234"), ErrorCode.PROTOCOL_ERROR, id="push"),
        pytest.param(frames.frame(frames.CONTINUATION, 4, 1, b""), ErrorCode.PROTOCOL_ERROR, id="continuation alone"),
        pytest.param(frames.frame(frames.GOAWAY, 0, 0, b"1234"), ErrorCode.FRAME_SIZE_ERROR, id="short goaway"),
        pytest.param(
            frames.frame(frames.HEADERS, 0, 1, b"\x82") + frames.ping(b"12345678"),
            ErrorCode.PROTOCOL_ERROR,
            id="header block interrupted",
        ),
    ],
)
def test_broken_frame_ends_the_connection(data: bytes, code: ErrorCode) -> None:
    attacker = Attacker()
    ended = end_of(attacker.sends(data))
    assert ended is not None
    assert ended.code is code
    assert attacker.victim.is_closed
    assert attacker.sends(frames.ping(b"12345678")) == []


ATTACKS = attacks_of_a_client(REQUEST)


@pytest.mark.parametrize("name", ATTACKS)
def test_attack_is_answered_as_it_should_be(name: str) -> None:
    attack, attacker = ATTACKS[name], Attacker()
    attacker.victim.data_to_send()
    if name in attacks_of_either_end() and "headers" not in name and name not in ("continuation flood", "header bomb"):
        attacker.sends(attacker.request(1), attacker.request(3))
    events = [event for piece in attack.pieces for event in attacker.sends(piece)]
    said = attacker.victim.data_to_send()
    if attack.stream_only:
        assert frames.rst_stream(1, attack.ends) in said
        assert end_of(events) is None
        assert attacker.sends(frames.ping(b"12345678")) == []
        assert attacker.victim.data_to_send() == frames.ping(b"12345678", is_ack=True)
    else:
        ended = end_of(events)
        assert ended is not None
        assert ended.code is attack.ends


# It waits for the whole of a frame before it looks at its length, and says PROTOCOL_ERROR where RFC 9113 §4.3 asks for
# COMPRESSION_ERROR. It has no budgets, so floods are no question for it.
H2_DIFFERS = {"frame larger than agreed", "headers that do not decompress"}


@pytest.mark.parametrize("name", [name for name, attack in ATTACKS.items() if attack.ends is not CALM])
def test_h2_refuses_the_same_with_the_same_code(name: str) -> None:
    attack = ATTACKS[name]
    victim = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
    victim.initiate_connection()
    victim.receive_data(frames.PREFACE + frames.settings({}))
    if not attack.stream_only and "headers" not in name:
        victim.receive_data(Attacker().request(1))
    victim.clear_outbound_data_buffer()
    with contextlib.suppress(h2.exceptions.ProtocolError):
        for piece in attack.pieces:
            victim.receive_data(piece)
    codes = {
        frames.parse_word(frame.payload[4:] if frame.kind == frames.GOAWAY else frame.payload)
        for frame in frames.FrameReader(1 << 20).feed(victim.data_to_send())
        if frame.kind in (frames.GOAWAY, frames.RST_STREAM)
    }
    assert (attack.ends in codes) != (name in H2_DIFFERS), codes


def test_peer_with_no_window_is_sent_nothing_and_no_more_is_queued_than_agreed() -> None:
    attacker = Attacker()
    attacker.sends(frames.settings({4: 0}), attacker.request(1))
    victim = attacker.victim
    stream = victim.streams[1]
    victim.send_headers(stream, ((":status", "200"),))
    victim.data_to_send()
    while not stream.is_full:
        victim.send_data(stream, bytes(10_000))
    assert stream.queued_bytes < victim.config.send_queue_bytes + 10_000
    assert victim.data_to_send() == b""
    assert victim.outbox.is_empty
    attacker.sends(frames.window_update(1, 1))  # drop by drop: a frame for each byte, never more
    assert victim.data_to_send() == frames.frame(frames.DATA, 0, 1, b"\x00")
    assert victim.data_to_send() == b""


def test_window_that_shrinks_below_zero_stops_the_stream_and_can_be_filled_up() -> None:
    attacker = Attacker()
    attacker.sends(attacker.request(1))
    victim = attacker.victim
    stream = victim.streams[1]
    victim.send_headers(stream, ((":status", "200"),))
    victim.send_data(stream, bytes(100_000))
    victim.data_to_send()
    attacker.sends(frames.window_update(0, 1 << 20), frames.settings({4: 0}))
    assert stream.send_window == -65_535
    victim.data_to_send()
    attacker.sends(frames.window_update(1, 65_535))
    assert victim.data_to_send() == b""
    attacker.sends(frames.window_update(1, 10))
    assert victim.data_to_send() == frames.frame(frames.DATA, 0, 1, bytes(10))


def test_requests_whose_answers_nobody_reads_end_the_connection() -> None:
    """Each is answered in full and over at once, so that no limit on open streams or resets sees it."""
    endpoint = ServerEndpoint()
    encoder = HeaderEncoder()
    endpoint.receive_data(frames.PREFACE + frames.settings({}))
    get = tuple((name, "GET" if name == ":method" else value) for name, value in REQUEST)
    for stream_id in stream_ids(5000):
        block = encoder.encode(get)
        endpoint.receive_data(frames.header_frames(stream_id, block, end_stream=True, max_frame=16_384))
        if endpoint.http.is_closed:
            break
    assert endpoint.http.is_closed
    assert b"too many answers waiting to be read" in endpoint.data_to_send()


def test_first_frame_must_be_settings() -> None:
    attacker = Attacker()
    fresh = type(attacker.victim)(is_client=False)
    ended = end_of(fresh.receive_data(frames.PREFACE + frames.ping(b"12345678")))
    assert ended is not None
    assert ended.code is ErrorCode.PROTOCOL_ERROR


def test_pings_beside_a_flow_of_data_are_free() -> None:
    # grpc-go measures the round trip with one PING after another while it receives.
    attacker = Attacker()
    attacker.sends(attacker.request(1), frames.window_update(0, 2**30), frames.window_update(1, 2**30))
    stream = attacker.victim.streams[1]
    attacker.victim.send_headers(stream, ((":status", "200"),))
    for _ in range(5000):
        attacker.victim.send_data(stream, b"x")
        attacker.victim.data_to_send()
        assert end_of(attacker.sends(frames.ping(b"12345678"))) is None


def test_server_may_end_any_number_of_our_streams() -> None:
    client = Connection(is_client=True)
    client.receive_data(frames.settings({}))
    for _ in range(3000):
        stream = client.open_stream(REQUEST)
        client.data_to_send()
        assert end_of(client.receive_data(frames.rst_stream(stream.id, ErrorCode.NO_ERROR))) is None


def test_late_frames_for_streams_that_are_over_cost_nothing() -> None:
    client = Connection(is_client=True)
    client.receive_data(frames.settings({}))
    stream = client.open_stream(REQUEST)
    client.reset_stream(stream, ErrorCode.CANCEL)
    late = (
        frames.frame(frames.DATA, 0, 1, b"x"),
        frames.window_update(1, 5),
        frames.rst_stream(1, ErrorCode.CANCEL),
        frames.frame(frames.HEADERS, frames.END_HEADERS, 1, b"\x88"),
    )
    for _ in range(3000):
        assert client.receive_data(b"".join(late)) == []


def test_windows_smaller_than_the_rfc_grants_are_refused() -> None:
    with pytest.raises(ValueError, match="65,535"):
        Http2Config(stream_window=1000)
