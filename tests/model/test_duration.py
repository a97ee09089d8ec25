"""The vectors are what Go's time package prints and reads."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garboard.errors import InvalidValue
from garboard.model.duration import Duration


@pytest.mark.parametrize(("text", "nanoseconds", "printed"), [
    pytest.param("4m0s", 240 * 10**9, "4m0s", id="as kubeadm prints it"),
    pytest.param("24h", 86400 * 10**9, "24h0m0s", id="one unit"),
    pytest.param("1.5h", 5400 * 10**9, "1h30m0s", id="a fraction"),
    pytest.param("-1m", -60 * 10**9, "-1m0s", id="negative"),
    pytest.param("0", 0, "0s", id="zero needs no unit"),
    pytest.param("1500us", 1_500_000, "1.5ms", id="below a second"),
    pytest.param("0.5ns", 0, "0s", id="finer than a nanosecond is cut off"),
    pytest.param("1h1ns", 3600 * 10**9 + 1, "1h0m0.000000001s", id="full precision"),
])  # fmt: skip
def test_duration_is_read_and_printed(text: str, nanoseconds: int, printed: str) -> None:
    found = Duration.parse(text)
    assert found == Duration(nanoseconds)
    assert str(found) == printed


@pytest.mark.parametrize("text", ["", "5", "h", ".s", "1 h", "1d", "4m 0s", "٤m", "1h-1m", "2562048h"])
def test_what_go_refuses_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue):
        Duration.parse(text)


@pytest.mark.parametrize(("text", "message"), [
    pytest.param("", 'time: invalid duration ""', id="nothing"),
    pytest.param("5", 'time: missing unit in duration "5"', id="no unit"),
    pytest.param("1h5", 'time: missing unit in duration "1h5"', id="no unit at the end"),
    pytest.param("1d", 'time: unknown unit "d" in duration "1d"', id="a unit Go has not got"),
    pytest.param("ten minutes", 'time: invalid duration "ten minutes"', id="words"),
])  # fmt: skip
def test_refusal_says_what_go_says(text: str, message: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        Duration.parse(text)
    assert caught.value.message == message


@given(st.integers(min_value=-(2**63) + 1, max_value=2**63 - 1))
def test_printing_then_reading_gives_the_same_duration(nanoseconds: int) -> None:
    assert Duration.parse(str(Duration(nanoseconds))) == Duration(nanoseconds)
