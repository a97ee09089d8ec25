"""SETTINGS (RFC 9113 §6.5): what we announce, and what the peer did."""

from typing import Final

from garboard.rpc import frames
from garboard.rpc.limits import Http2Config
from garboard.rpc.violations import ConnectionViolation, ErrorCode

HEADER_TABLE_SIZE: Final = 1
ENABLE_PUSH: Final = 2
MAX_CONCURRENT_STREAMS: Final = 3
INITIAL_WINDOW_SIZE: Final = 4
MAX_FRAME_SIZE: Final = 5
MAX_HEADER_LIST_SIZE: Final = 6

# Until the peer says otherwise; what Go and C++ clients assume too.
ASSUMED_CONCURRENT_STREAMS: Final = 100


def own_settings(config: Http2Config, *, is_client: bool) -> dict[int, int]:
    """What this end announces in its first frame."""
    announced = {
        INITIAL_WINDOW_SIZE: config.stream_window,
        MAX_FRAME_SIZE: config.max_frame,
        MAX_HEADER_LIST_SIZE: config.limits.header_list_bytes,
    }
    if is_client:
        return {ENABLE_PUSH: 0} | announced
    return {MAX_CONCURRENT_STREAMS: config.limits.concurrent_streams} | announced


class PeerSettings:
    """The peer's settings, with the defaults of the RFC until its first frame."""

    def __init__(self) -> None:
        self.header_table_bytes = 4096
        self.concurrent_streams = ASSUMED_CONCURRENT_STREAMS
        self.stream_window = frames.DEFAULT_WINDOW
        self.max_frame = frames.DEFAULT_MAX_FRAME
        self._has_spoken = False

    def update(self, values: list[tuple[int, int]]) -> int:
        """Take the values over and tell by how much the window of every open stream grows."""
        if not self._has_spoken:
            self._has_spoken = True
            self.concurrent_streams = frames.MAX_STREAM_ID
        window_before = self.stream_window
        for key, value in values:
            self._set(key, value)
        return self.stream_window - window_before

    def _set(self, key: int, value: int) -> None:
        if key == HEADER_TABLE_SIZE:
            self.header_table_bytes = value
        elif key == ENABLE_PUSH:
            _check(value <= 1, ErrorCode.PROTOCOL_ERROR, "ENABLE_PUSH")
        elif key == MAX_CONCURRENT_STREAMS:
            self.concurrent_streams = value
        elif key == INITIAL_WINDOW_SIZE:
            _check(value <= frames.MAX_WINDOW, ErrorCode.FLOW_CONTROL_ERROR, "INITIAL_WINDOW_SIZE")
            self.stream_window = value
        elif key == MAX_FRAME_SIZE:
            in_range = frames.DEFAULT_MAX_FRAME <= value <= frames.LARGEST_MAX_FRAME
            _check(in_range, ErrorCode.PROTOCOL_ERROR, "MAX_FRAME_SIZE")
            self.max_frame = value


def _check(holds: bool, code: ErrorCode, name: str) -> None:
    if not holds:
        raise ConnectionViolation(code, f"{name} out of range")
