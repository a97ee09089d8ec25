"""Bounded buffers, without sockets."""

from garboard.tunnel.wire.flow import (
    BESIDE_QUEUE,
    GRACE_S,
    SHED_TICK_S,
    SPILL,
    TICK_S,
    BufferLimit,
    Chunk,
    Outflow,
    StallPolicy,
    StallWatch,
)


class LimitedSink:
    """A sink that takes so many chunks."""

    def __init__(self, room: int = 0) -> None:
        self.room = room
        self.taken: list[bytes] = []
        self.backlog = 0
        self.is_given_up = False
        self.takes_in_steps = False

    @property
    def has_room(self) -> bool:
        return len(self.taken) < self.room

    def push(self, chunk: Chunk) -> None:
        self.taken.append(bytes(chunk))

    def give_up(self) -> None:
        self.is_given_up = True


class CountingSource:
    """A source that counts what it got back."""

    def __init__(self, *, shares_credit: bool = True) -> None:
        self.released = 0
        self.shares_credit = shares_credit

    def release(self, size: int) -> None:
        self.released += size


def outflow(sink: LimitedSink, **limits: float) -> tuple[Outflow, StallWatch]:
    watch = StallWatch(StallPolicy(**limits))  # type: ignore[arg-type]
    return Outflow(sink, watch), watch


def test_source_is_held_back_beyond_the_buffer_only() -> None:
    sink, source = LimitedSink(room=1), CountingSource()
    out, _ = outflow(sink, buffer_bytes=4)
    for _ in range(5):
        out.put(b"xx", 2, source)
    assert (source.released, out.queued_bytes, out.holds_back) == (6, 8, True)
    sink.room = 3
    out.drain()
    assert (source.released, out.holds_back) == (6, True)
    sink.room = 9
    out.drain()
    assert (source.released, out.is_empty, out.holds_back) == (10, True, False)
    assert b"".join(sink.taken) == b"x" * 10


def test_source_with_credit_of_its_own_waits_for_every_byte_and_is_never_given_up() -> None:
    sink, source = LimitedSink(), CountingSource(shares_credit=False)
    out, watch = outflow(sink, buffer_bytes=4, stall_s=1)
    for _ in range(5):
        out.put(b"xx", 2, source)
    assert (source.released, out.queued_bytes, out.holds_back) == (0, 10, False)
    assert not watch.waiting
    sink.room = 2
    out.drain()
    assert source.released == 4


def test_receiver_that_takes_nothing_lets_the_others_go_on_and_is_given_up() -> None:
    sink, source = LimitedSink(), CountingSource()
    out, watch = outflow(sink, buffer_bytes=2, stall_s=2)
    out.put(b"aa", 2, source)
    assert not watch.waiting  # nobody waits for it
    out.put(b"b", 1, source)
    watch.check(100)
    assert source.released == 2
    watch.check(100.5)
    assert source.released == 3  # its data waits; its neighbours do not
    out.put(b"c", 1, source)
    assert source.released == 4
    watch.check(101.9)
    assert not sink.is_given_up
    watch.check(102)
    assert sink.is_given_up


def test_receiver_without_progress_spills_so_far_and_holds_back_from_there_on() -> None:
    """However quick its source is: it has the whole time of the policy to take something."""
    sink, source = LimitedSink(), CountingSource()
    out, watch = outflow(sink, buffer_bytes=10, stall_s=2)
    for _ in range(2):
        out.put(b"x" * 10, 10, source)
    watch.check(0)
    watch.check(GRACE_S)
    for _ in range(20):
        out.put(b"x" * 10, 10, source)
    assert source.released == 10 * SPILL
    watch.check(1.9)
    assert source.released == 10 * SPILL
    assert not sink.is_given_up
    sink.room = 1000
    out.drain()
    watch.check(2)
    assert (source.released, sink.is_given_up) == (220, False)


def test_receiver_that_has_spilled_and_takes_nothing_is_given_up() -> None:
    sink, source = LimitedSink(), CountingSource()
    out, watch = outflow(sink, buffer_bytes=10, stall_s=2)
    for _ in range(20):
        out.put(b"x" * 10, 10, source)
        watch.check(GRACE_S if out.holds_back else 0)
    watch.check(2.1)
    assert sink.is_given_up


def test_time_in_which_this_process_did_not_run_does_not_count() -> None:
    sink, source = LimitedSink(), CountingSource()
    out, watch = outflow(sink, buffer_bytes=2, stall_s=1)
    for _ in range(2):
        out.put(b"aa", 2, source)
    watch.look(100)
    watch.look(103)  # the processor was elsewhere for three seconds: who could have taken anything?
    assert not sink.is_given_up
    for tick in range(1, 21):
        watch.look(103 + tick * TICK_S)
    assert sink.is_given_up


def test_progress_inside_the_receiver_counts() -> None:
    sink, source = LimitedSink(room=1), CountingSource()
    sink.backlog = 100
    out, watch = outflow(sink, buffer_bytes=1, stall_s=2)
    for _ in range(3):
        out.put(b"a", 1, source)
    for now in range(10):
        sink.backlog -= 1
        watch.check(now)
    assert not sink.is_given_up
    assert out.holds_back  # its source shares its pace
    watch.check(12)
    assert sink.is_given_up


def test_receiver_that_shows_progress_in_steps_has_the_time_for_one() -> None:
    """A gRPC client may read 4 MiB before it gives credit for any of them."""
    sink, source = LimitedSink(), CountingSource()
    sink.takes_in_steps = True
    out, watch = outflow(sink, buffer_bytes=1, stall_s=2, step_stall_s=60)
    for _ in range(5):
        out.put(b"a", 1, source)
    for now in (0, 50):
        watch.check(now)
    sink.room = 2
    out.drain()
    for now in (70, 129):
        watch.check(now)
    assert not sink.is_given_up
    watch.check(130)
    assert sink.is_given_up


def test_nobody_is_given_up_before_an_api_server_would_do_it() -> None:
    """The stock server cuts nobody; its client, in an API server, one that reads nothing for ten seconds."""
    policy = StallPolicy()
    assert 10 < policy.stall_s < policy.step_stall_s


def test_receiver_that_is_gone_gives_everything_back() -> None:
    sink, source = LimitedSink(), CountingSource()
    out, watch = outflow(sink, buffer_bytes=1)
    for _ in range(3):
        out.put(b"a", 1, source)
    out.clear()
    assert (source.released, out.queued_bytes, out.holds_back) == (3, 0, False)
    assert not watch.waiting


def holding(watch: StallWatch, size: int) -> LimitedSink:
    """A receiver for which so many bytes wait; they are dropped when it is given up."""

    class Held(LimitedSink):
        def give_up(self) -> None:
            super().give_up()
            out.clear()

    sink = Held()
    out = Outflow(sink, watch)
    out.put(b"x" * size, size, CountingSource(shares_credit=False))
    return sink


def test_readers_that_take_nothing_are_given_up_when_too_much_waits_in_all() -> None:
    watch = StallWatch(StallPolicy())
    reading, first, second = holding(watch, 100), holding(watch, 100), holding(watch, 100)
    limit = BufferLimit(2 * (100 + BESIDE_QUEUE))
    assert limit.enforce([watch], 10.0) == 0  # who stalls shows at the second look
    reading.backlog -= 50
    assert limit.enforce([watch], 10.0 + SHED_TICK_S / 2) == 0
    assert limit.enforce([watch], 10.0 + SHED_TICK_S) == 1
    assert (reading.is_given_up, first.is_given_up, second.is_given_up) == (False, True, False)


def test_tenant_that_holds_most_is_the_one_to_lose_readers() -> None:
    small, large = StallWatch(StallPolicy()), StallWatch(StallPolicy())
    one, many = holding(small, 100), [holding(large, 100) for _ in range(5)]
    limit = BufferLimit(3 * (100 + BESIDE_QUEUE))
    limit.enforce([small, large], 10.0)
    assert limit.enforce([small, large], 12.0) == 3
    assert [each.is_given_up for each in many] == [True, True, True, False, False]
    assert not one.is_given_up


def test_what_is_held_is_nothing_once_all_have_taken_theirs_or_are_gone() -> None:
    watch = StallWatch(StallPolicy())
    sink, gone = LimitedSink(), LimitedSink()
    out, left = Outflow(sink, watch), Outflow(gone, watch)
    for each in (out, left):
        each.put(b"xx", 2, CountingSource(shares_credit=False))
        each.put(b"xx", 2, CountingSource())
    assert watch.held_bytes == 8 + 2 * BESIDE_QUEUE
    sink.room = 9
    out.drain()
    left.clear()
    assert (watch.held_bytes, watch.queued_bytes, watch.holding) == (0, 0, {})


def test_receiver_of_a_connection_that_ends_holds_nobody_back_and_is_not_given_up_for_it() -> None:
    sink, source = LimitedSink(), CountingSource()
    out, watch = outflow(sink, buffer_bytes=4, stall_s=1)
    for _ in range(5):
        out.put(b"xx", 2, source)
    assert out.holds_back
    out.let_go()
    assert (source.released, out.holds_back) == (10, False)
    for now in (10.0, 12.0, 20.0):
        watch.check(now)
    assert not sink.is_given_up
    sink.room = 9
    out.drain()
    assert (b"".join(sink.taken), source.released) == (b"x" * 10, 10)
