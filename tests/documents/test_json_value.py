import pytest

from garboard.documents import Json, equal


@pytest.mark.parametrize(
    ("one", "other"),
    [(True, 1), (False, 0), (1, 1.0), ("1", 1), (None, False), ({}, []), ([1, 2], [2, 1]), ({"a": 1}, {"a": True})],
)
def test_other_kind_or_value_is_not_equal(one: Json, other: Json) -> None:
    assert not equal(one, other)
    assert not equal([one], [other])
    assert not equal({"k": one}, {"k": other})


@pytest.mark.parametrize("value", [None, True, 0, 1.5, "", [1, {"a": None}], {"b": [], "a": {}}])
def test_value_equals_itself(value: Json) -> None:
    assert equal(value, value)


def test_member_order_does_not_matter() -> None:
    assert equal({"a": 1, "b": 2}, {"b": 2, "a": 1})
