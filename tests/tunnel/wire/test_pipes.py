"""Scheduling and credit of connections on one stream, without sockets."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from garboard.tunnel.metrics import Count
from garboard.tunnel.wire.capabilities import STOCK, Terms
from garboard.tunnel.wire.flow import ByteSource, Chunk
from garboard.tunnel.wire.packets import Credit, Data, decode_packet, encode_packet, peek_data
from garboard.tunnel.wire.pipes import Pipe, PipeSender

CREDIT = Terms(takes_dials=True, send_window=100, receive_window=100)


class Stream:
    """As much of a call as the sender asks for, and of its link."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.sent: list[bytes] = []
        self.consumed = 0
        self.status = None

    @property
    def has_room(self) -> bool:
        return len(self.sent) < self.room

    def send(self, *chunks: Chunk) -> None:
        self.sent.append(b"".join(chunks))

    def consume(self, size: int) -> None:
        self.consumed += size

    def poke(self) -> None:
        pass


class CountingSource:
    """A source that counts what it got back."""

    shares_credit = False

    def __init__(self) -> None:
        self.released = 0

    def release(self, size: int) -> None:
        self.released += size


class HoldingSink:
    """A sink that keeps what it gets until it is told."""

    def __init__(self) -> None:
        self.kept: list[tuple[int, ByteSource]] = []

    def deliver_data(self, message: bytes, start: int, source: ByteSource) -> None:
        self.kept.append((len(message), source))

    def let_go(self) -> None:
        for size, source in self.kept:
            source.release(size)
        self.kept.clear()


def sender(room: int, terms: Terms = STOCK) -> tuple[PipeSender, Stream]:
    stream: Any = Stream(room)
    made = PipeSender(stream, stream, Count())
    made.agree(terms)
    return made, stream


def sent(stream: Stream) -> list[str]:
    """What went out: the connection of each DATA packet and its text, or the name of another packet."""
    found = map(decode_packet, stream.sent)
    return [f"{each.connect_id}{each.data.decode()}" if isinstance(each, Data) else repr(each) for each in found]


def data(pipe: Pipe, size: int) -> bytes:
    return encode_packet(Data(pipe.connect_id, "", b"x" * size))


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 2)), max_size=40), st.sampled_from([STOCK, CREDIT]))
def test_scheduling_keeps_each_order_and_gives_every_byte_back(steps: list[tuple[int, int]], terms: Terms) -> None:
    fair, stream = sender(0, terms)
    pipes = {number: fair.open(number, HoldingSink()) for number in (1, 2, 3)}
    sources = {number: CountingSource() for number in pipes}
    wanted: dict[int, list[str]] = {number: [] for number in pipes}
    for at, (number, more_room) in enumerate(steps):
        wanted[number].append(f"{number}m{at}")
        pipes[number].send(f"m{at}".encode(), sources[number])
        stream.room += more_room
        fair.writable()
    stream.room = 1000
    fair.writable()
    for number in pipes:
        fair.credit(number, 10_000)
    for number, texts in wanted.items():
        assert [text for text in sent(stream) if text.startswith(str(number))] == texts
        assert sources[number].released == sum(len(text) - 1 for text in texts)


def test_busy_connection_does_not_keep_others_waiting() -> None:
    fair, stream = sender(0)
    busy, quiet = fair.open(1, HoldingSink()), fair.open(2, HoldingSink())
    for number in range(5):
        busy.send(f"b{number}".encode(), CountingSource())
    quiet.send(b"q", CountingSource())
    fair.send_urgent(encode_packet(Credit(9, 1)))
    stream.room = 4
    fair.writable()
    assert sent(stream) == ["Credit(connect_id=9, size=1)", "1b0", "2q", "1b1"]


def test_connection_without_credit_waits_alone() -> None:
    fair, stream = sender(1000, CREDIT)
    stalled, neighbour = fair.open(1, HoldingSink()), fair.open(2, HoldingSink())
    source = CountingSource()
    for _ in range(10):
        stalled.send(b"x" * 40, source)
    neighbour.send(b"hello", CountingSource())
    assert source.released == 3 * 40  # the packet that exhausts the credit still goes
    assert sent(stream)[-1] == "2hello"
    fair.credit(1, 60)
    assert source.released == 4 * 40


def test_close_goes_behind_the_data_and_waits_with_it() -> None:
    fair, stream = sender(1000, CREDIT)
    pipe = fair.open(1, HoldingSink())
    for _ in range(4):
        pipe.send(b"x" * 40, CountingSource())
    fair.send_last(pipe, encode_packet(Credit(7, 7)))
    fair.finish(pipe)
    assert len(stream.sent) == 3
    assert 1 in fair.pipes
    fair.credit(1, 1000)
    assert sent(stream)[-1] == "Credit(connect_id=7, size=7)"
    assert not fair.pipes


def test_credit_is_given_back_in_quarters_of_the_window() -> None:
    fair, stream = sender(1000, CREDIT)
    sink = HoldingSink()
    pipe = fair.open(1, sink)
    pipe.receive(data(pipe, 10), 8)
    sink.let_go()
    assert not stream.sent
    pipe.receive(data(pipe, 10), 8)
    sink.let_go()
    [credit] = map(decode_packet, stream.sent)
    assert credit == Credit(1, 2 * len(data(pipe, 10)))
    assert stream.consumed == 0  # the stream's own credit is another's matter


def test_stock_peer_gets_its_credit_from_the_stream_and_hears_of_no_other() -> None:
    fair, stream = sender(1000)
    sink = HoldingSink()
    pipe = fair.open(1, sink)
    for _ in range(100):
        pipe.receive(data(pipe, 1000), 8)
    assert stream.consumed == 0
    sink.let_go()
    assert stream.consumed == 100 * len(data(pipe, 1000))
    assert not stream.sent


def test_peer_that_ignores_its_credit_is_found_out() -> None:
    fair, _ = sender(1000, CREDIT)
    pipe = fair.open(1, HoldingSink())
    message = data(pipe, 1024 * 1024)
    found = peek_data(message)
    assert found is not None
    assert [pipe.receive(message, found[1]) for _ in range(5)] == [True, True, True, True, False]


def test_end_of_the_stream_gives_everything_back() -> None:
    fair, _ = sender(0)
    source = CountingSource()
    fair.open(1, HoldingSink()).send(b"xyz", source)
    fair.clear()
    assert source.released == 3
    assert not fair.pipes
