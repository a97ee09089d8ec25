"""Bounded buffers and turns, without sockets."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from garboard.tunnel.flow import NOBODY, Chunk, FairSender, Outflow, Patience


class Valve:
    """A sink that takes so many chunks."""

    def __init__(self, room: int = 0) -> None:
        self.room = room
        self.taken: list[bytes] = []
        self.backlog = 0

    @property
    def has_room(self) -> bool:
        return len(self.taken) < self.room

    def push(self, chunk: Chunk) -> None:
        self.taken.append(bytes(chunk))


class Purse:
    """A source that counts what it got back."""

    def __init__(self) -> None:
        self.released = 0

    def release(self, size: int) -> None:
        self.released += size


class Stream:
    """As much of a call as the sender asks for, and of its link."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.sent: list[bytes] = []
        self.status = None

    @property
    def has_room(self) -> bool:
        return len(self.sent) < self.room

    def send(self, *chunks: Chunk) -> None:
        self.sent.append(b"".join(chunks))

    def poke(self) -> None:
        pass


def sender(room: int) -> tuple[FairSender, Stream]:
    stream: Any = Stream(room)
    return FairSender(stream, stream), stream


def test_source_is_held_back_beyond_the_buffer_only() -> None:
    valve, purse = Valve(room=1), Purse()
    outflow = Outflow(valve, Patience(buffer_bytes=4))
    for _ in range(5):
        outflow.put(b"xx", 2, purse)
    assert (purse.released, outflow.queued_bytes, outflow.holds_back) == (6, 8, True)
    valve.room = 3
    outflow.drain()
    assert (purse.released, outflow.holds_back) == (6, True)
    valve.room = 9
    outflow.drain()
    assert (purse.released, outflow.is_empty, outflow.holds_back) == (10, True, False)
    assert b"".join(valve.taken) == b"x" * 10


def test_receiver_is_stalled_when_others_wait_and_nothing_moves() -> None:
    valve, purse = Valve(), Purse()
    outflow = Outflow(valve, Patience(buffer_bytes=1, stall_s=2))
    outflow.put(b"a", 1, purse)
    assert not outflow.is_stalled(0)
    assert not outflow.is_stalled(100)  # nobody waits for it
    outflow.put(b"b", 1, purse)
    assert not outflow.is_stalled(101)
    assert outflow.is_stalled(102)
    valve.room = 1
    outflow.drain()
    assert not outflow.is_stalled(103)
    assert outflow.is_stalled(105)


def test_progress_inside_the_receiver_counts() -> None:
    valve, purse = Valve(room=1), Purse()
    valve.backlog = 100
    outflow = Outflow(valve, Patience(buffer_bytes=1, stall_s=2))
    for _ in range(3):
        outflow.put(b"a", 1, purse)
    assert not outflow.is_stalled(0)
    valve.backlog = 50
    assert not outflow.is_stalled(2)
    assert outflow.is_stalled(4)


@given(st.lists(st.tuples(st.sampled_from("ABC"), st.integers(0, 2)), max_size=40))
def test_turns_keep_each_order_and_give_every_byte_back(steps: list[tuple[str, int]]) -> None:
    fair, stream = sender(room=0)
    purses = {key: Purse() for key in "ABC"}
    wanted: dict[str, list[bytes]] = {key: [] for key in "ABC"}
    for number, (key, more_room) in enumerate(steps):
        message = f"{key}{number}".encode()
        wanted[key].append(message)
        fair.send(key, (message,), len(message), purses[key])
        stream.room += more_room
        fair.writable()
    stream.room = 1000
    fair.writable()
    for key, messages in wanted.items():
        assert [sent for sent in stream.sent if sent.startswith(key.encode())] == messages
        assert purses[key].released == sum(map(len, messages))


def test_busy_connection_does_not_keep_others_waiting() -> None:
    fair, stream = sender(room=0)
    for number in range(5):
        fair.send("busy", (f"b{number}".encode(),), 1, NOBODY)
    fair.send("quiet", (b"q",), 1, NOBODY)
    fair.send(None, (b"urgent",), 0, NOBODY)
    stream.room = 4
    fair.writable()
    assert stream.sent == [b"urgent", b"b0", b"q", b"b1"]


def test_end_of_the_stream_gives_everything_back() -> None:
    fair, _ = sender(room=0)
    purse = Purse()
    fair.send("a", (b"xyz",), 3, purse)
    fair.clear()
    assert purse.released == 3
