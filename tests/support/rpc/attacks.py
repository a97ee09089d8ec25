"""What a peer that means harm sends, as frames: each attack with the answer that ends it.

The same bytes go into the state machine, into `h2` where it has an opinion, and into the ports of the real programs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from garboard.rpc import frames
from garboard.rpc.headers import HeaderEncoder, Headers
from garboard.rpc.violations import ErrorCode

PIECE: Final = 50  # frames that go out at once, before the victim is heard
CALM: Final = ErrorCode.ENHANCE_YOUR_CALM


@dataclass(frozen=True)
class Attack:
    """Pieces of bytes; `ends` is the code of the GOAWAY or, with `stream_only`, of the RST_STREAM that answers them."""

    pieces: tuple[bytes, ...]
    ends: ErrorCode
    stream_only: bool = False


def attacks_of_a_client(request: Headers, *, streams: int = 1000, stream_window: int = 1 << 20) -> dict[str, Attack]:
    """On a fresh connection, after the preface and SETTINGS; `request` is one that the server takes.

    The server allows so many streams, and so much data on each.
    """
    encoder = HeaderEncoder()
    ask = encoder.encode(request)
    again = encoder.encode(request)  # by now the table knows it: the same bytes for every later stream

    def opened(stream_id: int, flags: int = 0) -> bytes:
        return frames.frame(frames.HEADERS, frames.END_HEADERS | flags, stream_id, ask if stream_id == 1 else again)

    def reset(stream_id: int) -> bytes:
        return opened(stream_id) + frames.rst_stream(stream_id, ErrorCode.CANCEL)

    ids = range(1, 6001, 2)
    data = frames.frame(frames.DATA, 0, 1, bytes(16_384))
    bomb = encoder_bomb(request)
    return {
        "rapid reset": Attack(tuple(_joined(map(reset, ids))), CALM),
        "mistakes that make the victim reset": Attack(
            tuple(_joined(opened(each) + frames.window_update(each, 0) for each in ids)), CALM
        ),
        "more streams than allowed": Attack(tuple(_joined(map(opened, range(1, 2 * (streams + 1200), 2)))), CALM),
        "data after the end of the stream": Attack(
            (opened(1), frames.frame(frames.DATA, frames.END_STREAM, 1), frames.frame(frames.DATA, 0, 1, b"x")),
            ErrorCode.STREAM_CLOSED,
            stream_only=True,
        ),
        "window of a stream beyond its end": Attack(
            (opened(1), frames.window_update(1, 2**31 - 1)), ErrorCode.FLOW_CONTROL_ERROR, stream_only=True
        ),
        "data beyond the stream's window": Attack(
            (opened(1), *[data] * (stream_window // 16_384 + 4)), ErrorCode.FLOW_CONTROL_ERROR, stream_only=True
        ),
        "empty data": Attack((opened(1), *_flood(frames.frame(frames.DATA, 0, 1), 2500)), CALM),
        "data of padding alone": Attack(
            (opened(1), *_flood(frames.frame(frames.DATA, frames.PADDED, 1, b"\x00"), 2500)), CALM
        ),
        "header bomb": Attack((frames.frame(frames.HEADERS, frames.END_HEADERS, 1, bomb),), CALM),
        "even stream number": Attack((frames.frame(frames.HEADERS, 4, 2, b"\x82"),), ErrorCode.PROTOCOL_ERROR),
        **attacks_of_either_end(),
    }


def attacks_of_either_end() -> dict[str, Attack]:
    """On stream 1, which a client has opened or is about to; for a server it is open when these come."""
    error = ErrorCode.PROTOCOL_ERROR
    unfinished = frames.frame(frames.HEADERS, 0, 1, b"\x83")
    return {
        "continuation flood": Attack((unfinished, *_flood(frames.frame(frames.CONTINUATION, 0, 1, b""), 50)), CALM),
        "headers without end": Attack(
            (frames.frame(frames.HEADERS, 0, 1, b"x" * 16_384),
             *[frames.frame(frames.CONTINUATION, 0, 1, b"x" * 16_384)] * 5),
            CALM,
        ),
        "settings flood": Attack(tuple(_flood(frames.settings({}), 500)), CALM),
        "acknowledgements of nothing": Attack(tuple(_flood(frames.SETTINGS_ACK, 2500)), CALM),
        "ping flood": Attack(tuple(_flood(frames.ping(b"12345678"), 5000)), CALM),
        "answers to no ping": Attack(tuple(_flood(frames.ping(b"12345678", is_ack=True), 2500)), CALM),
        "goaway flood": Attack(tuple(_flood(frames.goaway(2**31 - 1, ErrorCode.NO_ERROR), 500)), CALM),
        "priority flood": Attack(tuple(_flood(frames.frame(frames.PRIORITY, 0, 1, b"12345"), 2500)), CALM),
        "unknown frames": Attack(tuple(_flood(frames.frame(0x77, 0, 0, b"12345"), 2500)), CALM),
        "window of the connection beyond its end": Attack(
            (frames.window_update(0, 2**31 - 1),), ErrorCode.FLOW_CONTROL_ERROR
        ),
        "window update of nothing": Attack((frames.window_update(0, 0),), error),
        "initial window beyond its end": Attack((frames.settings({4: 2**31}),), ErrorCode.FLOW_CONTROL_ERROR),
        "data on an idle stream": Attack((frames.frame(frames.DATA, 0, 7777, b"x"),), error),
        "data on stream 0": Attack((frames.frame(frames.DATA, 0, 0, b"x"),), error),
        "padding longer than its frame": Attack((frames.frame(frames.DATA, frames.PADDED, 1, b"\x05abc"),), error),
        "padded headers longer than their frame": Attack((frames.frame(frames.HEADERS, 0xC, 1, b"\xff\x82"),), error),
        "frame larger than agreed": Attack(
            (frames.pack_header((1 << 20) << 8 | frames.PING, 0, 0),), ErrorCode.FRAME_SIZE_ERROR
        ),
        "push": Attack((frames.frame(frames.PUSH_PROMISE, 4, 1, b"\x00\x00\x00\x02\x82"),), error),
        "headers that do not decompress": Attack(
            (frames.frame(frames.HEADERS, frames.END_HEADERS, 1, b"\xff\xff\xff\xff\xff\x7f"),),
            ErrorCode.COMPRESSION_ERROR,
        ),
    }  # fmt: skip


def encoder_bomb(request: Headers) -> bytes:
    """One entry of 4,000 bytes in the dynamic table, then a byte for each repetition of it."""
    return HeaderEncoder().encode((*request, ("bomb", "x" * 3900))) + b"\xbe" * 2000


def _flood(frame: bytes, count: int) -> Iterator[bytes]:
    return _joined([frame] * count)


def _joined(flood: "Iterator[bytes] | list[bytes] | map[bytes]") -> Iterator[bytes]:
    rest = list(flood)
    for start in range(0, len(rest), PIECE):
        yield b"".join(rest[start : start + PIECE])
