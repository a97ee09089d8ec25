"""Lists over shared storage behave as slices do in Go."""

from hypothesis import given
from hypothesis import strategies as st

from garboard.documents import Json
from garboard.patches.slots import Slots


def test_storage_has_the_next_power_of_two() -> None:
    three = Slots.over(["a", "b", "c"])
    four = three.append(["d"])
    four.without(0)
    assert three.values() == ["b", "c", "d"], "there was a place left, so the longer list shares the storage"


def test_list_that_does_not_fit_gets_storage_of_its_own() -> None:
    two = Slots.over(["a", "b"])
    two.append(["c"]).without(0)
    assert two.values() == ["a", "b"]


def test_removing_moves_up_and_leaves_the_last_place() -> None:
    slots = Slots.over(["a", "b", "c"])
    assert slots.without(0).values() == ["b", "c"]
    assert slots.values() == ["b", "c", "c"]


def test_twin_is_overwritten_by_the_last_value() -> None:
    assert Slots.over(["", "", "B", "d"]).deduplicate() == ["", "d", "B"]


def test_true_is_not_one() -> None:
    assert Slots.over([True, 1, 1.0]).deduplicate() == [True, 1, 1.0]


@given(st.lists(st.sampled_from("abcd"), max_size=12))
def test_deduplication_keeps_each_value_once(values: list[Json]) -> None:
    kept = Slots.over(values).deduplicate()
    assert len(kept) == len(set(map(str, kept)))
    assert set(map(str, kept)) == set(map(str, values))
