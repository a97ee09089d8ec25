"""What happened on a connection, as `Connection.receive_data` reports it."""

from typing import NamedTuple

from garboard.rpc.headers import Headers
from garboard.rpc.streams import Stream
from garboard.rpc.violations import ErrorCode


class HeadersReceived(NamedTuple):
    """A request, a response or trailers; `is_trailers` tells the last from the first two."""

    stream: Stream
    headers: Headers
    is_trailers: bool
    ended: bool


class DataReceived(NamedTuple):
    """Bytes of a stream; the view is valid until the next `receive_data`. Give credit for its length when consumed."""

    stream: Stream
    data: memoryview
    ended: bool


class StreamReset(NamedTuple):
    """The stream is gone. `is_unprocessed`: the peer promises that it did nothing with it, so it may be tried again."""

    stream: Stream
    code: ErrorCode
    reason: str
    by_peer: bool
    is_unprocessed: bool = False


class PingAcknowledged(NamedTuple):
    payload: bytes


class PeerSettled(NamedTuple):
    """The peer's first SETTINGS arrived: it speaks HTTP/2."""


class GoingAway(NamedTuple):
    """The peer takes no new streams; those it took go on when the code is NO_ERROR."""

    code: ErrorCode
    debug: str


class ConnectionEnded(NamedTuple):
    """The connection failed; what is left to send should be sent, then the transport closed."""

    code: ErrorCode
    reason: str


Event = HeadersReceived | DataReceived | StreamReset | PingAcknowledged | PeerSettled | GoingAway | ConnectionEnded
