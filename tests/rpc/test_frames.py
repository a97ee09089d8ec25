import pytest
from hypothesis import given
from hypothesis import strategies as st

from garboard.rpc import frames
from garboard.rpc.frames import FrameReader
from garboard.rpc.violations import ConnectionViolation, ErrorCode
from tests.support.rpc.splitting import split_at

payloads = st.binary(max_size=64)
one_frame = st.builds(
    frames.frame, st.integers(0, 12), st.sampled_from([0, 1, 4, 5]), st.integers(0, frames.MAX_STREAM_ID), payloads
)
Whole = tuple[int, int, int, bytes, int]


def read(reader: FrameReader, pieces: list[bytes]) -> list[Whole]:
    """The frames in the pieces, with the parts of a DATA frame put together again."""
    found: list[Whole] = []
    for piece in pieces:
        for kind, flags, stream_id, payload, length in reader.feed(piece):
            if kind == frames.DATA and found and found[-1][0] == frames.DATA and len(found[-1][3]) < found[-1][4]:
                before = found.pop()
                assert length == 0
                assert not before[1] & frames.END_STREAM
                found.append((kind, flags, stream_id, before[3] + bytes(payload), before[4]))
            else:
                found.append((kind, flags, stream_id, bytes(payload), length))
    return found


@given(st.lists(one_frame, max_size=6), st.lists(st.integers(0, 400), max_size=8))
def test_any_split_of_the_bytes_gives_the_same_frames(sent: list[bytes], cuts: list[int]) -> None:
    data = b"".join(sent)
    assert read(FrameReader(16_384), split_at(data, cuts)) == read(FrameReader(16_384), [data])
    assert [bytes([0, 0]) + bytes([whole[4]]) for whole in read(FrameReader(16_384), [data])] == [
        one[:3] for one in sent
    ]


def test_data_is_handed_on_before_its_frame_is_complete() -> None:
    sent = frames.frame(frames.DATA, frames.END_STREAM, 1, b"abcdef")
    reader = FrameReader(16_384)
    first = list(reader.feed(sent[:12]))
    second = list(reader.feed(sent[12:]))
    assert [(bytes(each.payload), each.flags, each.length) for each in first] == [(b"abc", 0, 6)]
    assert [(bytes(each.payload), each.flags, each.length) for each in second] == [(b"def", frames.END_STREAM, 0)]


def test_frame_over_the_limit_is_refused_before_it_is_read() -> None:
    with pytest.raises(ConnectionViolation) as caught:
        list(FrameReader(16_384).feed(frames.frame(frames.DATA, 0, 1, b"x" * 16_385)[:9]))
    assert caught.value.code is ErrorCode.FRAME_SIZE_ERROR


def test_wrong_preface_is_refused_at_its_first_wrong_byte() -> None:
    reader = FrameReader(16_384, preface=frames.PREFACE)
    assert list(reader.feed(b"PRI * H")) == []
    with pytest.raises(ConnectionViolation):
        list(reader.feed(b"UTTP/2.0"))


@pytest.mark.parametrize("payload", [b"", b"\x01", b"\x05abc"], ids=["empty", "only padding length", "too long"])
def test_padding_longer_than_the_frame_is_refused(payload: bytes) -> None:
    with pytest.raises(ConnectionViolation):
        frames.strip_padding(frames.PADDED, memoryview(payload))


def test_padding_is_cut_off() -> None:
    assert bytes(frames.strip_padding(frames.PADDED, memoryview(b"\x02abc__"))) == b"abc"


def test_long_header_block_goes_on_in_continuation_frames() -> None:
    sent = frames.header_frames(1, b"x" * 25, end_stream=True, max_frame=10)
    assert [(kind, flags, length) for kind, flags, _, _, length in read(FrameReader(100), [sent])] == [
        (frames.HEADERS, frames.END_STREAM, 10),
        (frames.CONTINUATION, 0, 10),
        (frames.CONTINUATION, frames.END_HEADERS, 5),
    ]
