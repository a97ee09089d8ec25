from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garboard.schema.times import (
    canonical_duration,
    canonical_micro_time,
    canonical_time,
    parse_duration,
    write_duration,
)
from tests.support.schema.vectors import scalar_vectors


@pytest.mark.parametrize(
    ("scalar", "canonical"),
    [("time", canonical_time), ("microTime", canonical_micro_time), ("duration", canonical_duration)],
)
def test_recorded_texts_are_written_as_go_writes_them(scalar: str, canonical: Callable[[str], str | None]) -> None:
    pairs = scalar_vectors(scalar)
    assert len(pairs) > 100
    for text, written in pairs:
        assert isinstance(text, str)
        if written is None:
            with pytest.raises(ValueError, match=r"."):
                canonical(text)
        else:
            assert [canonical(text)] == written, text


@pytest.mark.parametrize(
    ("text", "written"),
    [
        pytest.param("2026-01-02T03:04:05+02:00", "2026-01-02T01:04:05Z", id="in UTC"),
        pytest.param("2026-01-02T03:04:05.999Z", "2026-01-02T03:04:05Z", id="cut to the second"),
        pytest.param("0001-01-01T00:00:00Z", None, id="zero is null"),
        pytest.param("9999-12-31T23:00:00-02:00", "10000-01-01T01:00:00Z", id="past the last year of the calendar"),
        pytest.param("0000-01-01T00:00:00+24:00", "-0001-12-31T00:00:00Z", id="before the first"),
    ],
)
def test_time_is_written_in_utc(text: str, written: str | None) -> None:
    assert canonical_time(text) == written


@pytest.mark.parametrize(
    ("text", "written"),
    [("90s", "1m30s"), ("1.5h", "1h30m0s"), ("1500us", "1.5ms"), ("0", "0s"), ("-3m", "-3m0s"), ("24h", "24h0m0s")],
)
def test_duration_is_written_as_go_does(text: str, written: str) -> None:
    assert canonical_duration(text) == written


@given(st.integers(-(2**63), 2**63 - 1))
def test_what_is_written_reads_back_as_the_same_length(nanoseconds: int) -> None:
    assert abs(parse_duration(write_duration(nanoseconds)) - nanoseconds) <= 1  # Go reads fractions as floats
