"""HTTP/2 error codes, and how protocol code says that a peer broke the rules.

Both exceptions stay inside `Connection.receive_data`: one becomes GOAWAY, the other RST_STREAM.
"""

from enum import IntEnum


class ErrorCode(IntEnum):
    """RFC 9113 §7; an unknown number is read as INTERNAL_ERROR."""

    NO_ERROR = 0
    PROTOCOL_ERROR = 1
    INTERNAL_ERROR = 2
    FLOW_CONTROL_ERROR = 3
    SETTINGS_TIMEOUT = 4
    STREAM_CLOSED = 5
    FRAME_SIZE_ERROR = 6
    REFUSED_STREAM = 7
    CANCEL = 8
    COMPRESSION_ERROR = 9
    CONNECT_ERROR = 10
    ENHANCE_YOUR_CALM = 11
    INADEQUATE_SECURITY = 12
    HTTP_1_1_REQUIRED = 13

    @classmethod
    def _missing_(cls, _value: object) -> "ErrorCode":
        return cls.INTERNAL_ERROR


class ConnectionViolation(Exception):
    """The connection cannot go on: it ends with GOAWAY."""

    def __init__(self, code: ErrorCode, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class StreamViolation(Exception):
    """One stream cannot go on: it ends with RST_STREAM, its neighbours do not notice."""

    def __init__(self, stream_id: int, code: ErrorCode, reason: str) -> None:
        super().__init__(reason)
        self.stream_id = stream_id
        self.code = code
        self.reason = reason
