"""HTTP/2 frames as bytes (RFC 9113 §4 and §6): builders for what we send, and a reader for what arrives."""

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from garboard.rpc.violations import ConnectionViolation, ErrorCode

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEADER_BYTES: Final = 9
MAX_STREAM_ID: Final = 2**31 - 1
MAX_WINDOW: Final = 2**31 - 1
DEFAULT_WINDOW: Final = 65_535
DEFAULT_MAX_FRAME: Final = 16_384
LARGEST_MAX_FRAME: Final = 2**24 - 1

DATA: Final = 0
HEADERS: Final = 1
PRIORITY: Final = 2
RST_STREAM: Final = 3
SETTINGS: Final = 4
PUSH_PROMISE: Final = 5
PING: Final = 6
GOAWAY: Final = 7
WINDOW_UPDATE: Final = 8
CONTINUATION: Final = 9

END_STREAM: Final = 0x1
ACK: Final = 0x1
END_HEADERS: Final = 0x4
PADDED: Final = 0x8
PRIORITY_FLAG: Final = 0x20


# The 24-bit length and the type share one word: `length << 8 | type`.
_HEADER = struct.Struct(">IBI")
_WORD = struct.Struct(">I")
_SETTING = struct.Struct(">HI")
pack_header = _HEADER.pack


def frame(kind: int, flags: int, stream_id: int, payload: bytes = b"") -> bytes:
    return pack_header(len(payload) << 8 | kind, flags, stream_id) + payload


def rst_stream(stream_id: int, code: ErrorCode) -> bytes:
    return frame(RST_STREAM, 0, stream_id, _WORD.pack(code))


def window_update(stream_id: int, increment: int) -> bytes:
    return frame(WINDOW_UPDATE, 0, stream_id, _WORD.pack(increment))


def ping(payload: bytes, *, is_ack: bool = False) -> bytes:
    return frame(PING, ACK if is_ack else 0, 0, payload)


def goaway(last_stream_id: int, code: ErrorCode, debug: bytes = b"") -> bytes:
    return frame(GOAWAY, 0, 0, _WORD.pack(last_stream_id) + _WORD.pack(code) + debug)


def settings(values: dict[int, int]) -> bytes:
    return frame(SETTINGS, 0, 0, b"".join(_SETTING.pack(key, value) for key, value in values.items()))


SETTINGS_ACK: Final = frame(SETTINGS, ACK, 0)


def header_frames(stream_id: int, block: bytes, *, end_stream: bool, max_frame: int) -> bytes:
    """One HEADERS frame, and CONTINUATION frames for what does not fit in it."""
    parts = [block[at : at + max_frame] for at in range(0, len(block), max_frame)] or [b""]
    last = len(parts) - 1
    frames = []
    for index, part in enumerate(parts):
        flags = END_HEADERS if index == last else 0
        if index == 0 and end_stream:
            flags |= END_STREAM
        frames.append(frame(CONTINUATION if index else HEADERS, flags, stream_id, part))
    return b"".join(frames)


def parse_word(payload: memoryview) -> int:
    """The 31-bit number of a WINDOW_UPDATE, RST_STREAM or GOAWAY field."""
    return int(_WORD.unpack_from(payload)[0])


def parse_settings(payload: memoryview) -> list[tuple[int, int]]:
    if len(payload) % _SETTING.size:
        raise ConnectionViolation(ErrorCode.FRAME_SIZE_ERROR, "SETTINGS of a broken length")
    return list(_SETTING.iter_unpack(payload))


def strip_padding(flags: int, payload: memoryview) -> memoryview:
    """The payload without its pad length and padding (RFC 9113 §6.1, §6.2)."""
    if not flags & PADDED:
        return payload
    if not payload or payload[0] >= len(payload):
        raise ConnectionViolation(ErrorCode.PROTOCOL_ERROR, "padding longer than its frame")
    return payload[1 : len(payload) - payload[0]]


class Frame(NamedTuple):
    kind: int
    flags: int
    stream_id: int
    payload: memoryview
    # What counts against flow control: the length of the frame on its first part, 0 on later parts of one DATA frame.
    length: int


class FrameReader:
    """Cuts what arrives into frames, at any split of the bytes.

    DATA is handed on as it comes, in parts, so a large frame is never held here; END_STREAM stays with the last part.
    Payloads are views into the bytes given to `feed`, valid until the next call.
    """

    def __init__(self, max_frame: int, *, preface: bytes = b"") -> None:
        self.max_frame = max_frame
        self._preface = preface
        # The start of a frame that is not complete, and how many bytes it takes to look at it again.
        self._rest = bytearray()
        self._needed_bytes = 0
        self._data_left = 0
        self._data_flags = 0
        self._data_stream = 0

    def feed(self, data: bytes | bytearray | memoryview) -> Iterator[Frame]:
        if self._rest:
            self._rest += data
            if len(self._rest) < self._needed_bytes:
                return
            data, self._rest = self._rest, bytearray()
        view = memoryview(data)
        needed = HEADER_BYTES
        at = self._read_preface(view) if self._preface else 0
        end = len(view)
        if self._data_left and at < end:
            part = self._data_part(view, at, 0)
            at += len(part.payload)
            yield part
        while end - at >= HEADER_BYTES:
            word, flags, stream_id = _HEADER.unpack_from(view, at)
            length = word >> 8
            if length > self.max_frame:
                speaks_http1 = bytes(view[at : at + 5]) == b"HTTP/"
                reason = "the peer speaks HTTP/1, not HTTP/2" if speaks_http1 else f"a frame of {length} bytes"
                raise ConnectionViolation(ErrorCode.FRAME_SIZE_ERROR, reason)
            start = at + HEADER_BYTES
            stop = start + length
            if stop <= end:
                yield Frame(word & 0xFF, flags, stream_id & MAX_STREAM_ID, view[start:stop], length)
                at = stop
            elif word & 0xFF == DATA and not flags & PADDED and start < end:
                self._data_left, self._data_flags, self._data_stream = length, flags, stream_id & MAX_STREAM_ID
                yield self._data_part(view, start, length)
                at = end
            else:
                needed += length
                break
        self._rest += view[at:]
        self._needed_bytes = needed

    def _data_part(self, view: memoryview, at: int, length: int) -> Frame:
        part = view[at : at + self._data_left]
        self._data_left -= len(part)
        flags = self._data_flags if not self._data_left else self._data_flags & ~END_STREAM
        return Frame(DATA, flags, self._data_stream, part, length)

    def _read_preface(self, view: memoryview) -> int:
        taken = min(len(view), len(self._preface))
        if view[:taken] != self._preface[:taken]:
            raise ConnectionViolation(ErrorCode.PROTOCOL_ERROR, "the peer does not speak HTTP/2")
        self._preface = self._preface[taken:]
        return taken
