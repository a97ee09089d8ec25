from garboard.rpc import frames
from garboard.rpc.connection import Connection
from garboard.rpc.frames import FrameReader
from garboard.rpc.limits import Http2Config
from garboard.rpc.violations import ErrorCode
from tests.support.rpc.peers import REQUEST


def settled_client(config: Http2Config | None = None, **peer_settings: int) -> Connection:
    """A client whose peer has sent these settings; its own greeting is out of the way."""
    client = Connection(is_client=True, config=config)
    names = {"window": 4, "max_frame": 5}
    client.receive_data(frames.settings({names[name]: value for name, value in peer_settings.items()}))
    client.data_to_send()
    return client


def data_frames(data: bytes) -> list[tuple[int, int, int]]:
    """Stream, length and flags of each DATA frame."""
    return [
        (each.stream_id, each.length, each.flags) for each in FrameReader(2**24).feed(data) if each.kind == frames.DATA
    ]


def test_streams_take_turns() -> None:
    client = settled_client(Http2Config(turn_bytes=1000))
    streams = [client.open_stream(REQUEST) for _ in range(3)]
    for stream in streams:
        client.send_data(stream, bytes(2000))
    assert [stream_id for stream_id, _, _ in data_frames(client.data_to_send())] == [1, 3, 5, 1, 3, 5]


def test_bulk_goes_out_in_frames_as_large_as_we_take_them_ourselves() -> None:
    config = Http2Config()
    client = settled_client(window=2**20, max_frame=config.max_frame)
    client.receive_data(frames.window_update(0, 2**20))
    client.send_data(client.open_stream(REQUEST), bytes(300_000))
    assert [length for _, length, _ in data_frames(client.data_to_send(2**20))] == [config.max_frame, 37_856]


def test_late_stream_does_not_wait_for_a_bulky_one() -> None:
    client = settled_client(Http2Config(turn_bytes=1000))
    bulky, small = client.open_stream(REQUEST), client.open_stream(REQUEST)
    client.send_data(bulky, bytes(60_000))
    client.data_to_send(limit=1000)
    client.send_data(small, b"hi")
    assert data_frames(client.data_to_send(limit=1002))[:2] == [(1, 1000, 0), (3, 2, 0)]


def test_window_of_a_stream_holds_only_that_stream_back() -> None:
    client = settled_client(window=10)
    first, second = client.open_stream(REQUEST), client.open_stream(REQUEST)
    client.send_data(first, b"x" * 15)
    client.send_data(second, b"y" * 5)
    assert data_frames(client.data_to_send()) == [(1, 10, 0), (3, 5, 0)]
    assert client.data_to_send() == b""
    client.receive_data(frames.window_update(1, 100))
    assert data_frames(client.data_to_send()) == [(1, 5, 0)]


def test_window_of_the_connection_holds_all_back_and_the_turn_is_kept() -> None:
    client = settled_client(Http2Config(turn_bytes=40_000), window=2**20, max_frame=2**20)
    first, second = client.open_stream(REQUEST), client.open_stream(REQUEST)
    client.send_data(first, bytes(100_000))
    client.send_data(second, bytes(100_000))
    assert data_frames(client.data_to_send()) == [(1, 40_000, 0), (3, 25_535, 0)]
    client.receive_data(frames.window_update(0, 50_000))
    assert data_frames(client.data_to_send()) == [(1, 40_000, 0), (3, 10_000, 0)]


def test_smaller_initial_window_makes_an_open_streams_window_negative() -> None:
    client = settled_client()
    stream = client.open_stream(REQUEST)
    client.send_data(stream, bytes(60_000))
    client.data_to_send()
    client.receive_data(frames.settings({4: 100}))
    assert stream.send_window == 100 - 60_000
    client.send_data(stream, b"x")
    assert data_frames(client.data_to_send()) == []
    client.receive_data(frames.window_update(1, 60_000))
    assert data_frames(client.data_to_send()) == [(1, 1, 0)]


def test_end_comes_behind_the_data_without_a_frame_of_its_own() -> None:
    client = settled_client(window=10)
    stream = client.open_stream(REQUEST)
    client.send_data(stream, b"x" * 15)
    client.end_stream(stream)
    assert data_frames(client.data_to_send()) == [(1, 10, 0)]
    client.receive_data(frames.window_update(1, 10))
    assert data_frames(client.data_to_send()) == [(1, 5, frames.END_STREAM)]


def test_end_needs_no_window() -> None:
    client = settled_client(window=0)
    stream = client.open_stream(REQUEST)
    client.end_stream(stream)
    assert data_frames(client.data_to_send()) == [(1, 0, frames.END_STREAM)]


def test_full_queue_is_told_and_so_is_room() -> None:
    client = settled_client(Http2Config(send_queue_bytes=1000), window=600)
    stream = client.open_stream(REQUEST)
    client.send_data(stream, bytes(1000))
    assert stream.is_full
    client.data_to_send()
    assert client.outbox.take_writable() == [stream]
    assert not stream.is_full


def test_reset_stream_sends_nothing_more() -> None:
    client = settled_client()
    stream = client.open_stream(REQUEST)
    client.send_data(stream, bytes(100))
    client.reset_stream(stream, ErrorCode.CANCEL)
    sent = client.data_to_send()
    assert data_frames(sent) == []
    assert sent.endswith(frames.rst_stream(1, ErrorCode.CANCEL))


def test_chunks_are_cut_and_joined_without_losing_a_byte() -> None:
    client = settled_client(Http2Config(turn_bytes=7))
    stream = client.open_stream(REQUEST)
    chunks = [bytes([value]) * value for value in range(20)]
    client.send_data(stream, *chunks)
    found = [bytes(each.payload) for each in FrameReader(2**24).feed(client.data_to_send()) if each.kind == frames.DATA]
    assert b"".join(found) == b"".join(chunks)
    assert {len(each) for each in found[:-1]} == {7}
