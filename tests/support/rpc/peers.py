"""Two ends that talk without a network, and a hostile end made of raw frames."""

from garboard.rpc import frames
from garboard.rpc.connection import Connection
from garboard.rpc.endpoint import ClientEndpoint, EndpointEvent, ServerEndpoint
from garboard.rpc.events import ConnectionEnded, Event
from garboard.rpc.headers import HeaderEncoder, Headers
from garboard.rpc.limits import Http2Config

REQUEST: Headers = (
    (":method", "POST"),
    (":scheme", "http"),
    (":path", "/S/M"),
    (":authority", "localhost"),
    ("te", "trailers"),
    ("content-type", "application/grpc"),
)


class FakeClock:
    """Time that moves when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Attacker:
    """A client of raw frames in front of one of our servers."""

    def __init__(self, config: Http2Config | None = None) -> None:
        self.clock = FakeClock()
        self.victim = Connection(is_client=False, config=config, clock=self.clock)
        self._encoder = HeaderEncoder()
        self.sends(frames.PREFACE, frames.settings({}))

    def sends(self, *data: bytes) -> list[Event]:
        return self.victim.receive_data(b"".join(data))

    def request(self, stream_id: int, headers: Headers = REQUEST, *, end_stream: bool = False) -> bytes:
        block = self._encoder.encode(headers)
        return frames.header_frames(stream_id, block, end_stream=end_stream, max_frame=16_384)


def end_of(events: list[Event]) -> ConnectionEnded | None:
    """How the connection was ended by us, if it was."""
    return next((event for event in events if isinstance(event, ConnectionEnded)), None)


def exchange(client: ClientEndpoint, server: ServerEndpoint) -> tuple[list[EndpointEvent], list[EndpointEvent]]:
    """Carry bytes both ways until neither has anything to say; what client and server heard."""
    heard_by_client: list[EndpointEvent] = []
    heard_by_server: list[EndpointEvent] = []
    while True:
        up, down = client.data_to_send(), server.data_to_send()
        if not up and not down:
            return heard_by_client, heard_by_server
        heard_by_server += server.receive_data(up)
        heard_by_client += client.receive_data(down)
