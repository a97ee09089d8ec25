"""Our connection and the `h2` library as each other's peer, with hypothesis choosing who does what and how bytes split.

`h2` raises on anything it finds wrong in what we send, and both ends must hear exactly what the other said.
"""

from collections import defaultdict
from dataclasses import dataclass, field

import h2.config
import h2.connection
import h2.events
import h2.settings
from hypothesis import given, settings
from hypothesis import strategies as st

from garboard.rpc.connection import Connection
from garboard.rpc.events import ConnectionEnded, DataReceived, GoingAway, HeadersReceived, StreamReset
from garboard.rpc.limits import Http2Config
from garboard.rpc.streams import Stream
from garboard.rpc.violations import ErrorCode
from tests.support.rpc.peers import REQUEST
from tests.support.rpc.splitting import split_at

RESPONSE = ((":status", "200"), ("content-type", "application/grpc"))
TRAILERS = (("grpc-status", "0"), ("long", "x" * 300))
SMALL = Http2Config(stream_window=65_535, connection_window=70_000, max_frame=16_384, turn_bytes=5_000)

steps = st.lists(
    st.one_of(
        st.tuples(st.just("open"), st.just(0), st.just(0)),
        st.tuples(st.sampled_from(["h2 data", "our data"]), st.integers(0, 3), st.integers(0, 30_000)),
        st.tuples(st.sampled_from(["h2 end", "our end", "h2 reset", "our reset"]), st.integers(0, 3), st.just(0)),
        st.tuples(st.just("h2 window"), st.integers(0, 3), st.integers(0, 100_000)),
        st.tuples(st.sampled_from(["h2 ping", "our ping", "h2 priority"]), st.just(0), st.just(0)),
        st.tuples(st.just("carry"), st.just(0), st.just(0)),
    ),
    max_size=25,
)
cuts = st.lists(st.integers(0, 50_000), max_size=5)


@dataclass
class Pair:
    """One connection with h2 at the other end."""

    we_are_client: bool
    cuts: list[int]
    ours: Connection = field(init=False)
    theirs: h2.connection.H2Connection = field(init=False)
    streams: dict[int, Stream] = field(default_factory=dict)
    reset: set[int] = field(default_factory=set)
    sent: dict[tuple[str, int], bytearray] = field(default_factory=lambda: defaultdict(bytearray))
    heard: dict[tuple[str, int], bytearray] = field(default_factory=lambda: defaultdict(bytearray))
    ended: set[tuple[str, int]] = field(default_factory=set)
    their_end: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.ours = Connection(is_client=self.we_are_client, config=SMALL)
        config = h2.config.H2Configuration(client_side=not self.we_are_client, header_encoding="utf-8")
        self.theirs = h2.connection.H2Connection(config)
        self.theirs.initiate_connection()
        self.carry()

    def carry(self) -> None:
        """Move bytes until both are silent."""
        while True:
            down, up = self.ours.data_to_send(), self.theirs.data_to_send()
            if not down and not up:
                return
            for piece in split_at(up, self.cuts):
                self.we_hear(piece)
            for piece in split_at(down, self.cuts):
                self.they_hear(piece)

    def we_hear(self, data: bytes) -> None:
        for event in self.ours.receive_data(data):
            assert not isinstance(event, ConnectionEnded | GoingAway), event
            if isinstance(event, HeadersReceived):
                if event.stream.id not in self.streams:
                    self.streams[event.stream.id] = event.stream
                    self.ours.send_headers(event.stream, RESPONSE)
                if event.ended:
                    self.ended.add(("we", event.stream.id))
            elif isinstance(event, DataReceived):
                self.heard["we", event.stream.id] += event.data
                self.ours.credit(event.stream, len(event.data))
                if event.ended:
                    self.ended.add(("we", event.stream.id))
            elif isinstance(event, StreamReset):
                self.reset.add(event.stream.id)

    def they_hear(self, data: bytes) -> None:
        for event in self.theirs.receive_data(data):
            if isinstance(event, h2.events.DataReceived):
                assert event.data is not None
                self.heard["they", event.stream_id] += event.data
                if event.flow_controlled_length:
                    self.theirs.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, h2.events.RequestReceived):
                self.theirs.send_headers(event.stream_id, RESPONSE)
            elif isinstance(event, h2.events.StreamEnded):
                self.ended.add(("they", event.stream_id))
            elif isinstance(event, h2.events.StreamReset):
                self.reset.add(event.stream_id)

    def step(self, kind: str, which: int, size: int) -> None:
        """One action; what makes no sense now is left out."""
        if kind == "open":
            self.open()
        elif kind == "carry":
            self.carry()
        elif kind == "h2 ping":
            self.theirs.ping(b"12345678")
        elif kind == "our ping":
            self.ours.ping(b"87654321")
        elif kind == "h2 priority":
            if not self.we_are_client:
                self.theirs.prioritize(101, weight=16)
        elif kind == "h2 window":
            self.theirs.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: size})
        elif self.streams:
            stream = self.streams[sorted(self.streams)[which % len(self.streams)]]
            if stream.id not in self.reset:
                self.act(kind, stream, size)

    def open(self) -> None:
        if len(self.streams) >= 3:
            return
        if self.we_are_client:
            stream = self.ours.open_stream(REQUEST)
            self.streams[stream.id] = stream
        else:
            self.theirs.send_headers(self.theirs.get_next_available_stream_id(), REQUEST, priority_weight=10)
        self.carry()

    def act(self, kind: str, stream: Stream, size: int) -> None:
        if kind == "h2 data" and stream.id not in self.their_end:
            room = min(self.theirs.local_flow_control_window(stream.id), self.theirs.max_outbound_frame_size) - 10
            if 0 < size <= room:
                self.theirs.send_data(stream.id, b"t" * size, pad_length=size % 10 or None)
                self.sent["they", stream.id] += b"t" * size
        elif kind == "h2 end" and stream.id not in self.their_end:
            self.their_end.add(stream.id)
            self.theirs.send_headers(stream.id, TRAILERS, end_stream=True)
        elif kind == "our data" and stream.can_send:
            self.ours.send_data(stream, b"o" * size)
            self.sent["we", stream.id] += b"o" * size
        elif kind == "our end" and stream.can_send and self.we_are_client:
            # RFC 9113 §6.9 lets an empty frame end a stream whose window has shrunk below zero; h2 does not.
            if stream.send_window >= 0 or stream.queued_bytes:
                self.ours.end_stream(stream)
        elif kind == "our end" and stream.can_send and stream.id in self.their_end:
            self.carry()
            self.ours.end_stream(stream, TRAILERS)
        elif kind == "our reset":
            self.reset.add(stream.id)
            self.ours.reset_stream(stream, ErrorCode.CANCEL)
            self.carry()
        elif kind == "h2 reset" and not (stream.id in self.their_end and stream.end_of_sending is not None):
            self.carry()
            if stream.id not in self.reset:
                self.reset.add(stream.id)
                self.theirs.reset_stream(stream.id, ErrorCode.CANCEL)
                self.carry()

    def finish(self) -> None:
        """End what is open, with windows wide enough for all that waits."""
        self.theirs.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: 2**20})
        self.carry()
        for stream in self.streams.values():
            if stream.id not in self.reset:
                self.act("h2 end", stream, 0)
                self.act("our end", stream, 0)
        self.carry()


@settings(max_examples=80, deadline=None)
@given(st.booleans(), steps, cuts)
def test_both_ends_hear_what_the_other_said(
    we_are_client: bool, chosen: list[tuple[str, int, int]], where: list[int]
) -> None:
    pair = Pair(we_are_client, where)
    pair.open()
    for kind, which, size in chosen:
        pair.step(kind, which, size)
    pair.finish()
    for stream_id in set(pair.streams) - pair.reset:
        assert pair.heard["we", stream_id] == pair.sent["they", stream_id]
        assert pair.heard["they", stream_id] == pair.sent["we", stream_id]
        assert {("we", stream_id), ("they", stream_id)} <= pair.ended
    assert pair.ours.streams == {}
