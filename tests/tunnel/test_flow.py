"""Bounded buffers, without sockets."""

from garboard.tunnel.flow import GRACE_S, SPILL, Chunk, Outflow, Patience, StallWatch


class Valve:
    """A sink that takes so many chunks."""

    def __init__(self, room: int = 0) -> None:
        self.room = room
        self.taken: list[bytes] = []
        self.backlog = 0
        self.is_given_up = False

    @property
    def has_room(self) -> bool:
        return len(self.taken) < self.room

    def push(self, chunk: Chunk) -> None:
        self.taken.append(bytes(chunk))

    def give_up(self) -> None:
        self.is_given_up = True


class Purse:
    """A source that counts what it got back."""

    def __init__(self, *, shares_credit: bool = True) -> None:
        self.released = 0
        self.shares_credit = shares_credit

    def release(self, size: int) -> None:
        self.released += size


def outflow(valve: Valve, **patience: float) -> tuple[Outflow, StallWatch]:
    watch = StallWatch(Patience(**patience))  # type: ignore[arg-type]
    return Outflow(valve, watch), watch


def test_source_is_held_back_beyond_the_buffer_only() -> None:
    valve, purse = Valve(room=1), Purse()
    out, _ = outflow(valve, buffer_bytes=4)
    for _ in range(5):
        out.put(b"xx", 2, purse)
    assert (purse.released, out.queued_bytes, out.holds_back) == (6, 8, True)
    valve.room = 3
    out.drain()
    assert (purse.released, out.holds_back) == (6, True)
    valve.room = 9
    out.drain()
    assert (purse.released, out.is_empty, out.holds_back) == (10, True, False)
    assert b"".join(valve.taken) == b"x" * 10


def test_source_with_credit_of_its_own_waits_for_every_byte_and_is_never_given_up() -> None:
    valve, purse = Valve(), Purse(shares_credit=False)
    out, watch = outflow(valve, buffer_bytes=4, stall_s=1)
    for _ in range(5):
        out.put(b"xx", 2, purse)
    assert (purse.released, out.queued_bytes, out.holds_back) == (0, 10, False)
    assert not watch.waiting
    valve.room = 2
    out.drain()
    assert purse.released == 4


def test_receiver_that_takes_nothing_lets_the_others_go_on_and_is_given_up() -> None:
    valve, purse = Valve(), Purse()
    out, watch = outflow(valve, buffer_bytes=2, stall_s=2)
    out.put(b"aa", 2, purse)
    assert not watch.waiting  # nobody waits for it
    out.put(b"b", 1, purse)
    watch.check(100)
    assert purse.released == 2
    watch.check(100.5)
    assert purse.released == 3  # its data waits; its neighbours do not
    out.put(b"c", 1, purse)
    assert purse.released == 4
    watch.check(101.9)
    assert not valve.is_given_up
    watch.check(102)
    assert valve.is_given_up


def test_receiver_without_progress_spills_so_far_and_no_further() -> None:
    valve, purse = Valve(), Purse()
    out, watch = outflow(valve, buffer_bytes=10, stall_s=1000)
    for _ in range(2):
        out.put(b"x" * 10, 10, purse)
    watch.check(0)
    watch.check(GRACE_S)
    for _ in range(20):
        out.put(b"x" * 10, 10, purse)
    assert purse.released == 10 * SPILL
    watch.check(2 * GRACE_S)
    assert valve.is_given_up


def test_progress_inside_the_receiver_counts() -> None:
    valve, purse = Valve(room=1), Purse()
    valve.backlog = 100
    out, watch = outflow(valve, buffer_bytes=1, stall_s=2)
    for _ in range(3):
        out.put(b"a", 1, purse)
    for now in range(10):
        valve.backlog -= 1
        watch.check(now)
    assert not valve.is_given_up
    assert out.holds_back  # its source shares its pace
    watch.check(12)
    assert valve.is_given_up


def test_receiver_that_is_gone_gives_everything_back() -> None:
    valve, purse = Valve(), Purse()
    out, watch = outflow(valve, buffer_bytes=1)
    for _ in range(3):
        out.put(b"a", 1, purse)
    out.clear()
    assert (purse.released, out.queued_bytes, out.holds_back) == (3, 0, False)
    assert not watch.waiting
