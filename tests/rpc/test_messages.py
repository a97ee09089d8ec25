import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garboard.rpc.messages import BadMessage, Deframer, pack_prefix
from garboard.rpc.status import StatusCode
from tests.support.rpc.splitting import split_at


@given(st.lists(st.binary(max_size=40), max_size=6), st.lists(st.integers(0, 300), max_size=10))
def test_messages_come_out_whole_at_any_split(sent: list[bytes], cuts: list[int]) -> None:
    data = b"".join(pack_prefix(0, len(each)) + each for each in sent)
    deframer, found, fed, taken = Deframer(), [], 0, 0
    for piece in split_at(data, cuts):
        messages = deframer.feed(memoryview(piece))
        fed += len(piece)
        taken += sum(5 + len(each) for each in messages)
        assert deframer.held_bytes == fed - taken
        found += messages
    assert found == sent
    assert deframer.held_bytes == 0


def test_message_over_the_limit_is_refused_by_its_prefix_alone() -> None:
    with pytest.raises(BadMessage) as caught:
        Deframer(max_message=10).feed(memoryview(pack_prefix(0, 11)))
    assert caught.value.code is StatusCode.RESOURCE_EXHAUSTED


def test_compressed_message_is_refused() -> None:
    with pytest.raises(BadMessage) as caught:
        Deframer().feed(memoryview(b"\x01\x00\x00\x00\x01x"))
    assert caught.value.code is StatusCode.INTERNAL


def test_message_of_the_exact_limit_is_taken() -> None:
    assert Deframer(max_message=3).feed(memoryview(pack_prefix(0, 3) + b"abc")) == [b"abc"]


def test_message_in_tiny_parts_costs_no_more_than_it_holds() -> None:
    deframer = Deframer()
    size = 200_000
    deframer.feed(memoryview(pack_prefix(0, size)))
    for _ in range(size // 2 - 1):
        assert deframer.feed(memoryview(b"ab")) == []
    assert sum(map(sys.getsizeof, deframer._parts)) < 2 * size
    assert deframer.feed(memoryview(b"ab")) == [b"ab" * (size // 2)]
