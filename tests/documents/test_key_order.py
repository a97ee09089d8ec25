from itertools import permutations

import pytest

from garboard.documents.key_order import sort_keys


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param(["-x", "_", "1", "2", "10", "A", "Z", "a", "a-b", "a_b", "a1"], id="letters last"),
        pytest.param(["a", "a1", "a2", "a10", "a10b", "ab"], id="digit runs by value"),
        pytest.param(["a1", "a01", "a2", "a02"], id="equal values by length"),
        pytest.param(["_", "~", "A", "a", "é", "中"], id="by code point"),
    ],
)
def test_keys_are_ordered_naturally(keys: list[str]) -> None:
    for shuffled in permutations(keys[:7]):
        assert sort_keys(shuffled) == keys[:7]
    assert sort_keys(reversed(keys)) == keys
