"""Small JSON documents without nulls, as strategies."""

from hypothesis import strategies as st

LEAVES = st.booleans() | st.integers(-5, 5) | st.sampled_from(["a", "b", ""])
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.sampled_from("abcd"), VALUES, max_size=4)
