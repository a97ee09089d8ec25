from hypothesis import given
from hypothesis import strategies as st

from garboard.fleet.names import MAX_LENGTH, derived_name

NAMES = st.text("abc-9", min_size=1, max_size=80)


def test_short_names_are_joined() -> None:
    assert derived_name("edge", "berlin") == "edge-berlin"


def test_long_base_is_cut_and_stands_as_its_hash() -> None:
    name = derived_name("p" * 60, "berlin")
    assert (len(name), name[:47], name[-7:]) == (MAX_LENGTH, "p" * 47, "-berlin")
    assert derived_name("p" * 60, "berlin") != derived_name("p" * 61, "berlin")


@given(NAMES, NAMES)
def test_name_is_never_too_long(base: str, suffix: str) -> None:
    assert len(derived_name(base, suffix)) <= MAX_LENGTH
