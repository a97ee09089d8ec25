"""gRPC status codes, and how failures of the layers below become one."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from garboard.rpc.metadata import Metadata
from garboard.rpc.violations import ErrorCode


class StatusCode(IntEnum):
    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16

    @classmethod
    def parse(cls, text: str) -> "StatusCode":
        """The code a peer sent; what is not one counts as UNKNOWN, as the specification asks."""
        return next((code for code in cls if str(int(code)) == text), cls.UNKNOWN)


@dataclass(frozen=True, slots=True)
class Status:
    """How a call ended."""

    code: StatusCode
    message: str = ""
    trailers: Metadata = ()

    @property
    def is_ok(self) -> bool:
        return self.code is StatusCode.OK


OK: Final = Status(StatusCode.OK)

# "HTTP to gRPC Status Code Mapping" of the gRPC specification: for answers of proxies that do not speak gRPC.
_FROM_HTTP: Final = {
    "400": StatusCode.INTERNAL,
    "401": StatusCode.UNAUTHENTICATED,
    "403": StatusCode.PERMISSION_DENIED,
    "404": StatusCode.UNIMPLEMENTED,
    "429": StatusCode.UNAVAILABLE,
    "502": StatusCode.UNAVAILABLE,
    "503": StatusCode.UNAVAILABLE,
    "504": StatusCode.UNAVAILABLE,
}

# The table of the gRPC over HTTP/2 specification; every other code is INTERNAL.
_FROM_RESET: Final = {
    ErrorCode.REFUSED_STREAM: StatusCode.UNAVAILABLE,
    ErrorCode.CANCEL: StatusCode.CANCELLED,
    ErrorCode.ENHANCE_YOUR_CALM: StatusCode.RESOURCE_EXHAUSTED,
    ErrorCode.INADEQUATE_SECURITY: StatusCode.PERMISSION_DENIED,
}


def status_of_http(http_status: str) -> Status:
    return Status(_FROM_HTTP.get(http_status, StatusCode.UNKNOWN), f"the peer answered with HTTP status {http_status}")


def status_of_reset(code: ErrorCode, reason: str, *, is_unprocessed: bool) -> Status:
    if is_unprocessed:
        return Status(StatusCode.UNAVAILABLE, reason)
    return Status(_FROM_RESET.get(code, StatusCode.INTERNAL), reason)
